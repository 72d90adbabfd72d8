"""Event patterns of EventBridge: whether an event matches one, judged without asking EventBridge.

The language is that of Amazon EventBridge's "Comparison operators for use in event patterns", and the
verdicts are those of its matcher, aws/event-ruler: a pattern asks something of each of its *paths*, which are
names of fields joined by dots, in alphabetical order. What answers different paths must stand in the same
element of each list that both go through.

AWS may add operators. What a pattern says by one that is not known here is neither true nor false, but None.
"""

from __future__ import annotations

import ipaddress
import itertools
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from fanin.errors import InvalidRequest

Pattern: TypeAlias = Mapping[str, Any]
"""Field → lists of accepted values and operators, or a pattern for the fields below it."""
Verdict: TypeAlias = bool | None
"""Whether something matches; None if that cannot be told here."""
Judge: TypeAlias = Callable[[Any], Verdict]
"""Whether a value of an event is one that a pattern accepts."""
Elements: TypeAlias = Mapping[tuple[int, str], int]
"""A list, by its id and path → the element of it that has answered so far."""

_OR: Final = "$or"
_COMBINATIONS: Final = 1_000
"""Most combinations of ``$or`` that EventBridge takes."""
_DEEPEST: Final = 64
"""Fields inside of each other; so few are judged without more of the stack than a process has."""
_MOST: Final = 30_000
"""Choices of elements that are followed at once, so that no event makes judging it take hours."""
_EXISTS: Final = "exists"
_IGNORE_CASE: Final = "equals-ignore-case"
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_RESERVED: Final = set(
    "exactly equals-ignore-case prefix suffix anything-but exists wildcard numeric cidr = < <= > >="  # noqa: SIM905
    " regex not-wildcard not-equals-ignore-case date-after date-on-or-after date-before date-on-or-before"
    " in-date-range ip-address-in-range ip-address-not-in-range".split()
)
"""Names that EventBridge takes for no field inside of ``$or``."""
_IPV4: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+")
_IPV6: Final = re.compile(r"[0-9a-fA-F:]*:[0-9a-fA-F:]*")


def check(pattern: Pattern) -> None:
    """Refuse what cannot be an event pattern, whatever operators there are.

    Raises:
        InvalidRequest: says why, in EventBridge's words; or fields are too deep, or ``$or`` makes too many
            combinations.
    """
    _alternatives(pattern)


def check_operators(pattern: Pattern) -> None:
    """Refuse what EventBridge refuses of the operators, and of what they take, in a checked pattern.

    Raises:
        InvalidRequest: says why, in EventBridge's words.
    """
    for choice in itertools.chain(*(leaf for one in _alternatives(pattern) for leaf in one.values())):
        _judge(choice)


def matches(pattern: Pattern, event: Mapping[str, Any]) -> Verdict:
    """Whether an event matches a pattern.

    Args:
        pattern: checked.
        event: as EventBridge delivers it.
    """
    return _some(_answers(one, event) for one in _alternatives(pattern))


def _refuse(reason: str) -> NoReturn:
    raise InvalidRequest(
        f"EventBridge does not accept this event pattern: Event pattern is not valid. Reason: {reason[:200]}"
    )


def _alternatives(
    pattern: Any, above: str = "", deep: int = _DEEPEST, *, inside: bool = False
) -> list[dict[str, list[Any]]]:
    """What a pattern asks of each path, once for each combination of the choices that ``$or`` gives.

    EventBridge reads patterns like this. Of a path that is named twice, the later list counts.
    """
    if not deep:
        raise InvalidRequest(f"an event pattern must have at most {_DEEPEST} fields inside of each other")
    if not isinstance(pattern, Mapping):
        _refuse("Filter is not an object")
    if not pattern:
        _refuse("Empty objects are not allowed")
    found: list[dict[str, list[Any]]] = [{}]
    for name, wanted in pattern.items():
        at = f"{above}.{name}" if above else name
        if name == _OR:
            _check_or(wanted)
            parts = [part for one in wanted for part in _alternatives(one, above, deep - 1, inside=True)]
        elif inside and name in _RESERVED:
            _refuse(f"{name} is Ruler reserved fieldName which cannot be used inside {_OR}.")
        elif isinstance(wanted, Mapping):
            parts = _alternatives(wanted, at, deep - 1, inside=inside)
        else:
            _check_values(name, wanted)
            parts = [{at: wanted}]
        if len(found) * len(parts) > _COMBINATIONS:
            raise InvalidRequest(f"an event pattern must have at most {_COMBINATIONS:,} combinations of $or")
        found = [{**one, **part} for one in found for part in parts]
    return found


def _check_values(name: str, wanted: Any) -> None:
    if not isinstance(wanted, list):
        _refuse(f'"{name}" must be an object or an array')
    if not wanted:
        _refuse("Empty arrays are not allowed")


def _check_or(wanted: Any) -> None:
    if not isinstance(wanted, list):
        _refuse(f"It must be an Array followed with {_OR}.")
    if not all(isinstance(one, Mapping) for one in wanted):
        _refuse(f"Only JSON object is allowed in array of {_OR} relationship.")
    if len(wanted) < 2:  # noqa: PLR2004
        _refuse(f"There must have at least 2 Objects in {_OR} relationship.")


def _answers(wanted: Mapping[str, list[Any]], event: Mapping[str, Any]) -> Verdict:
    """Whether an event has an answer to each path: path by path, with all choices of elements so far.

    A choice is told by the elements of those lists that later paths go through, too.
    """
    paths = sorted(wanted)
    choices: dict[frozenset[tuple[tuple[int, str], int]], Verdict] = {frozenset(): True}
    for done, path in enumerate(paths, start=1):
        judges = [_lenient(choice) for choice in wanted[path]]
        absent = any(isinstance(one, Mapping) and one.get(_EXISTS) is False for one in wanted[path])
        shared = {later[:end] for later in paths[done:] for end in _ends(later, 0)}
        after: dict[frozenset[tuple[tuple[int, str], int]], Verdict] = {}
        for choice, sure in choices.items():
            found = False
            for value, elements in _values(event, path, dict(choice), shared):
                found = True
                verdict = _some(judge(value) for judge in judges)
                if verdict is not False:
                    key = frozenset(one for one in elements.items() if one[0][1] in shared)
                    after[key] = after.get(key) or (sure and verdict)
            if absent and not found:
                key = frozenset(one for one in choice if one[0][1] in shared)
                after[key] = after.get(key) or sure
            if len(after) > _MOST:
                return None
        choices = after
    return _some(choices.values())


def _values(
    event: Mapping[str, Any], path: str, elements: Elements, shared: set[str]
) -> Iterator[tuple[Any, Elements]]:
    """The values at a path, each with the elements in which it stands.

    Args:
        event: is not checked for how deeply it is nested.
        path: of fields; a name in the event may have dots, too.
        elements: no others of these lists are looked into.
        shared: paths of lists whose elements are told.
    """
    left: list[tuple[Any, int, Elements]] = [(event, 0, elements)]
    while left:
        value, begin, chosen = left.pop()
        if isinstance(value, Mapping):
            if (
                begin < len(path) or not path
            ):  # EventBridge finds an empty name only where it is the whole path
                names = ((path[begin:end], end) for end in _ends(path, begin))
                left += [(value[name], end + 1, chosen) for name, end in names if name in value]
        elif not isinstance(value, list):
            if begin > len(path):
                yield value, chosen
        else:
            key = (id(value), path[: max(begin - 1, 0)])
            for index in [chosen[key]] if key in chosen and begin <= len(path) else range(len(value)):
                one = value[index]
                if not isinstance(one, list | Mapping):
                    left.append((one, begin, chosen))
                elif chosen.get(key, index) == index:
                    tell = key[1] in shared and len(value) > 1
                    left.append((one, begin, {**chosen, key: index} if tell else chosen))


def _ends(path: str, begin: int) -> Iterator[int]:
    """Where the names that a path may go on with end."""
    yield from (at for at in range(begin, len(path)) if path[at] == ".")
    yield len(path)


def _some(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    return True if True in found else None if None in found else False


def _lenient(choice: Any) -> Judge:
    try:
        return _judge(choice)
    except InvalidRequest:
        return lambda _: None


def _judge(choice: Any) -> Judge:
    if isinstance(choice, Mapping):
        name, operand = _only(choice)
        if name not in _OPERATORS:
            _refuse(f"Unrecognized match type {name}")
        return _OPERATORS[name](operand)
    if isinstance(choice, list):
        _refuse("Match value must be String, number, true, false, or null")
    address = _address(choice)
    return lambda value: _same(choice, value) or (address is not None and _address(value) == address)


def _only(choice: Mapping[str, Any]) -> tuple[str, Any]:
    if len(choice) != 1:
        _refuse("Only one key allowed in match expression" if choice else "Match expression name not found")
    return next(iter(choice.items()))


def _same(wanted: Any, value: Any) -> bool:
    """Equality in JSON: true is not 1."""
    return isinstance(wanted, bool) is isinstance(value, bool) and bool(wanted == value)


def _text(operand: Any, name: str) -> str:
    if not isinstance(operand, str):
        _refuse(f"{name} match pattern must be a string")
    return operand


def _texts(judge: Callable[[str], bool]) -> Judge:
    return lambda value: isinstance(value, str) and judge(value)


def _exactly(operand: Any) -> Judge:
    text = _text(operand, "exact")
    return lambda value: _same(text, value)


def _prefix(operand: Any) -> Judge:
    if isinstance(operand, Mapping):
        cased = _cased(_nested(operand, "prefix"))
        return _texts(lambda value: re.match(cased, value) is not None)
    text = _text(operand, "prefix")
    return _texts(lambda value: value.startswith(text))


def _suffix(operand: Any) -> Judge:
    if isinstance(operand, Mapping):
        cased = _cased(_nested(operand, "suffix")) + r"\Z"
        return _texts(lambda value: re.search(cased, value) is not None)
    text = _text(operand, "suffix")
    return _texts(lambda value: value.endswith(text))


def _nested(operand: Mapping[str, Any], name: str) -> Any:
    inner, text = _only(operand)
    if inner != _IGNORE_CASE:
        _refuse(f"Unsupported {name} pattern: {inner}")
    return text


def _equals_ignore_case(operand: Any) -> Judge:
    cased = _cased(operand)
    return _texts(lambda value: re.fullmatch(cased, value) is not None)


def _cased(operand: Any) -> str:
    """Each character is itself in lower or in upper case; one that Java has as two is only itself."""
    forms = [{one.lower(), one.upper()} if one <= "\uffff" else {one} for one in _text(operand, _IGNORE_CASE)]
    return "".join(f"(?:{'|'.join(map(re.escape, form))})" for form in forms)


def _wildcard(operand: Any) -> Judge:
    """Whether a text is like one with ``*`` in it, in a time that is linear in the text for each ``*``."""
    first, *others = _literals(_text(operand, "wildcard"))
    if not others:
        return lambda value: _same(first, value)
    *between, last = others

    def judge(value: str) -> bool:
        if not value.startswith(first) or not value.endswith(last):
            return False
        at, end = len(first), len(value) - len(last)
        for literal in between:
            at = value.find(literal, at, max(at, end))
            if at < 0:
                return False
            at += len(literal)
        return at <= end

    return _texts(judge)


def _literals(wildcard: str) -> list[str]:
    r"""What stands between the ``*``; ``\*`` and ``\\`` are the characters themselves."""
    found = [""]
    for one in re.finditer(r"\\[*\\]|[^*\\]+|.", wildcard, re.DOTALL):
        part, at = one[0], len(wildcard[: one.start()].encode()) + 1  # EventBridge counts the quote before it
        if part == "\\":
            _refuse(f"Invalid escape character at pos {at}")
        if part == "*" and wildcard[one.end() :].startswith("*"):
            _refuse(f"Consecutive wildcard characters at pos {at}")
        if part == "*":
            found.append("")
        else:
            found[-1] += part.removeprefix("\\")
    return found


def _numeric(operand: Any) -> Judge:
    if not isinstance(operand, list):
        _refuse("Value of numeric must be an array.")
    names, bounds = operand[::2], operand[1::2]
    for name, bound in itertools.zip_longest(names, bounds):
        if not isinstance(name, str) or name not in _COMPARISONS:
            _refuse(f"Unrecognized numeric range operator: {name}")
        if not isinstance(bound, int | float) or isinstance(bound, bool):
            _refuse(f"Value of {'equals' if name == '=' else name} must be numeric")
        if not _is_number(bound):
            _refuse(f"Cannot compare number : {bound}")
    if len(names) != 1 and (len(names) != 2 or names[0] not in {">", ">="} or names[1] not in {"<", "<="}):  # noqa: PLR2004
        _refuse("Too many elements in numeric expression")
    if len(names) == 2 and bounds[0] >= bounds[1]:  # noqa: PLR2004
        _refuse("Bottom must be less than top")
    tests = [(_COMPARISONS[name], bound) for name, bound in zip(names, bounds, strict=True)]
    return lambda value: _is_number(value) and all(test(value, bound) for test, bound in tests)


def _is_number(value: Any) -> bool:
    """Whether a value is a number that a double has: EventBridge compares no others."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max and float(value) == value


def _cidr(operand: Any) -> Judge:
    address, slash, bits = _text(operand, "prefix").partition("/")
    packed = _address(address)
    if packed is None or not slash or not re.fullmatch(r"\d+", bits, re.ASCII):
        _refuse("Malformed CIDR, one '/' required" if not slash else f"Malformed CIDR: {operand}")
    if int(bits[:4]) >= len(packed) * 8:
        _refuse(f"{'IPv4' if len(packed) == 4 else 'IPv6'} mask bits must be < {len(packed) * 8}")  # noqa: PLR2004
    network = ipaddress.ip_network((packed, int(bits)), strict=False)
    low, high = network.network_address.packed, network.broadcast_address.packed
    return lambda value: low <= (_address(value) or b"") <= high


def _address(value: Any) -> bytes | None:
    """The bytes of an IP address; EventBridge compares addresses of both kinds by these."""
    if not isinstance(value, str):
        return None
    try:
        if _IPV4.fullmatch(value):
            return bytes(map(int, value.split(".")))
        return ipaddress.IPv6Address(value).packed if _IPV6.fullmatch(value) else None
    except ValueError:
        return None


def _exists(operand: Any) -> Judge:
    if not isinstance(operand, bool):
        _refuse("exists match pattern must be either true or false.")
    return lambda _: operand


def _anything_but(operand: Any) -> Judge:
    name, refused = _only(operand) if isinstance(operand, Mapping) else ("", operand)
    refused = refused if isinstance(refused, list) else [refused]
    if not name:
        kinds = {str if isinstance(one, str) else _is_number(one) for one in refused}
        if kinds not in ({str}, {True}):
            kinds_allowed = "either all values are number or string, mixed type is not supported"
            _refuse(f"Inside anything but list, {kinds_allowed}")
    elif name not in {"prefix", "suffix", "wildcard", _IGNORE_CASE}:
        _refuse(f"Unsupported anything-but pattern: {name}")
    elif not refused or not all(isinstance(one, str) for one in refused):
        _refuse(f"{'prefix/suffix' if 'fix' in name else name} match pattern must be a string")
    elif "" in refused and name in {"prefix", "suffix"}:
        _refuse("Null prefix/suffix not allowed")
    judges = [_OPERATORS[name](one) if name else _judge(one) for one in refused]
    return lambda value: not any(judge(value) for judge in judges)


_OPERATORS: Final[Mapping[str, Callable[[Any], Judge]]] = {
    "anything-but": _anything_but,
    "cidr": _cidr,
    _IGNORE_CASE: _equals_ignore_case,
    "exactly": _exactly,
    _EXISTS: _exists,
    "numeric": _numeric,
    "prefix": _prefix,
    "suffix": _suffix,
    "wildcard": _wildcard,
}
"""What each makes of what it takes; an absence is no value, so ``exists`` finds it in ``_answers``."""
