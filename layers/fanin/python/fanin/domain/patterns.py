"""Event patterns of EventBridge: whether an event matches one, judged without asking EventBridge.

The language is that of Amazon EventBridge's "Comparison operators for use in event patterns", and the
verdicts are those of its matcher, aws/event-ruler: a pattern asks something of each of its *paths*, which are
names of fields joined by dots, in alphabetical order. What answers different paths must stand in the same
element of each list that both go through.

AWS may add operators. What a pattern says by one that is not known here is neither true nor false, but None.
"""

import ipaddress
import itertools
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
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
        InvalidRequest: says why; or fields are too deep, or ``$or`` makes too many combinations.
    """
    _alternatives(pattern)


def check_operators(pattern: Pattern) -> None:
    """Refuse operators that are not known here, and those that cannot take what they are given.

    Raises:
        InvalidRequest: says which.
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
    if not isinstance(pattern, Mapping) or not pattern:
        _refuse("a pattern must be an object with a field")
    found: list[dict[str, list[Any]]] = [{}]
    for name, wanted in pattern.items():
        at = f"{above}.{name}" if above else name
        if name == _OR:
            if not isinstance(wanted, list) or len(wanted) < 2:  # noqa: PLR2004
                _refuse(f"{_OR} must be an array of at least 2 objects")
            parts = [part for one in wanted for part in _alternatives(one, above, deep - 1, inside=True)]
        elif inside and name in _RESERVED:
            _refuse(f"{name} names an operator, so it cannot be a field inside {_OR}")
        elif isinstance(wanted, Mapping):
            parts = _alternatives(wanted, at, deep - 1, inside=inside)
        elif isinstance(wanted, list) and wanted:
            parts = [{at: wanted}]
        else:
            _refuse(f'"{name}" must be an object, or an array that is not empty')
        if len(found) * len(parts) > _COMBINATIONS:
            raise InvalidRequest(f"an event pattern must have at most {_COMBINATIONS:,} combinations of $or")
        found = [{**one, **part} for one in found for part in parts]
    return found


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
            found = [
                (_some(judge(value) for judge in judges), elements)
                for value, elements in _values(event, path, dict(choice), shared)
            ]
            for verdict, elements in found or [(absent, dict(choice))]:
                if verdict is not False:
                    key = frozenset(one for one in elements.items() if one[0][1] in shared)
                    after[key] = after.get(key) or (sure and verdict)
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
            # EventBridge finds an empty name only where it is the whole path.
            if begin < len(path) or not path:
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
    """Which values a choice accepts.

    Raises:
        InvalidRequest: it is an operator that is not known here, or that cannot take what it is given.
    """
    if isinstance(choice, Mapping | list):
        name, operand = _only(choice)
        judge = _OPERATORS[name](operand) if name in _OPERATORS else None
        return judge or _refuse(f"{choice} is neither a value nor an operator with what it takes")
    address = _address(choice)
    return lambda value: _same(choice, value) or (address is not None and _address(value) == address)


def _only(choice: Any) -> tuple[str, Any]:
    """The one operator of a choice, and what it is given; without a name, if it does not have exactly one."""
    return next(iter(choice.items())) if isinstance(choice, Mapping) and len(choice) == 1 else ("", None)


def _same(wanted: Any, value: Any) -> bool:
    """Equality in JSON: true is not 1."""
    return isinstance(wanted, bool) is isinstance(value, bool) and bool(wanted == value)


# Each of these gives the values that an operator accepts; None, if it cannot take what it is given.


def _like(operand: Any, cased: str, plain: Callable[[str, str], bool]) -> Judge | None:
    """Texts that are like another one, perhaps in lower or upper case.

    Args:
        operand: the other one, or an operator that has it.
        cased: an expression for the whole text, with ``{}`` for the other one in either case.
        plain: compares the text with the other one as it is.
    """
    name, inner = _only(operand)
    if name == _IGNORE_CASE and isinstance(inner, str):
        like = re.compile(cased.format(_cased(inner)), re.DOTALL)
        return lambda value: isinstance(value, str) and like.fullmatch(value) is not None
    if isinstance(operand, str):
        return lambda value: isinstance(value, str) and plain(value, operand)
    return None


def _cased(text: str) -> str:
    """Each character is itself in lower or in upper case; one that Java has as two is only itself."""
    forms = [{one.lower(), one.upper()} if one <= "\uffff" else {one} for one in text]
    return "".join(f"(?:{'|'.join(map(re.escape, form))})" for form in forms)


def _exactly(operand: Any) -> Judge | None:
    return (lambda value: _same(operand, value)) if isinstance(operand, str) else None


def _equals_ignore_case(operand: Any) -> Judge | None:
    return _like({_IGNORE_CASE: operand}, "{}", str.__eq__)


def _wildcard(operand: Any) -> Judge | None:
    """Whether a text is like one with ``*`` in it, in a time that is linear in the text for each ``*``."""
    literals = _literals(operand) if isinstance(operand, str) else []
    if not literals:
        return None
    first, *others = literals
    if not others:
        return lambda value: _same(first, value)
    *between, last = others

    def judge(value: Any) -> bool:
        if not isinstance(value, str) or not value.startswith(first) or not value.endswith(last):
            return False
        at, end = len(first), len(value) - len(last)
        for literal in between:
            at = value.find(literal, at, max(at, end))
            if at < 0:
                return False
            at += len(literal)
        return at <= end

    return judge


def _literals(wildcard: str) -> list[str]:
    r"""What stands between the ``*``; ``\*`` and ``\\`` are the characters themselves.

    Nothing, if there are two ``*`` side by side, or another character is escaped.
    """
    found = [""]
    for part in re.findall(r"\\[*\\]|[^*\\]+|\*{2}|.", wildcard, re.DOTALL):
        if part in {"\\", "**"}:
            return []
        if part == "*":
            found.append("")
        else:
            found[-1] += part.removeprefix("\\")
    return found


def _numeric(operand: Any) -> Judge | None:
    """Numbers that equal another, or lie on one side of it, or between two."""
    if not isinstance(operand, list) or not operand or len(operand) % 2:
        return None
    names, bounds = operand[::2], operand[1::2]
    if not all(isinstance(name, str) and name in _COMPARISONS for name in names):
        return None
    between = len(names) == 2 and names[0] in {">", ">="} and names[1] in {"<", "<="}  # noqa: PLR2004
    if not all(map(_is_number, bounds)) or not (len(names) == 1 or (between and bounds[0] < bounds[1])):
        return None
    tests = [(_COMPARISONS[name], bound) for name, bound in zip(names, bounds, strict=True)]
    return lambda value: _is_number(value) and all(test(value, bound) for test, bound in tests)


def _is_number(value: Any) -> bool:
    """Whether a value is a number that a double has: EventBridge compares no others."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max and float(value) == value


def _cidr(operand: Any) -> Judge | None:
    address, _, bits = operand.partition("/") if isinstance(operand, str) else ("", "", "")
    packed = _address(address)
    if packed is None or not re.fullmatch(r"\d+", bits, re.ASCII) or int(bits[:4]) >= len(packed) * 8:
        return None
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


def _exists(operand: Any) -> Judge | None:
    return (lambda _: operand) if isinstance(operand, bool) else None


def _anything_but(operand: Any) -> Judge | None:
    """All values but texts, or but numbers, or but texts that one of four operators accepts."""
    name, refused = _only(operand) if isinstance(operand, Mapping) else ("", operand)
    refused = refused if isinstance(refused, list) else [refused]
    texts = bool(refused) and all(isinstance(one, str) for one in refused)
    if isinstance(operand, Mapping):
        empty = "" in refused and name in {"prefix", "suffix"}
        if name not in {"prefix", "suffix", "wildcard", _IGNORE_CASE} or not texts or empty:
            return None
    elif not texts and not (refused and all(map(_is_number, refused))):
        return None
    found = [_OPERATORS[name](one) if name else _judge(one) for one in refused]
    judges = [judge for judge in found if judge is not None]
    if len(judges) < len(found):
        return None
    return lambda value: not any(judge(value) for judge in judges)


_OPERATORS: Final[Mapping[str, Callable[[Any], Judge | None]]] = {
    "anything-but": _anything_but,
    "cidr": _cidr,
    _IGNORE_CASE: _equals_ignore_case,
    "exactly": _exactly,
    _EXISTS: _exists,
    "numeric": _numeric,
    "prefix": partial(_like, cased="{}.*", plain=str.startswith),
    "suffix": partial(_like, cased=".*{}", plain=str.endswith),
    "wildcard": _wildcard,
}
"""What each makes of what it takes; an absence is no value, so ``exists`` finds it in ``_answers``."""
