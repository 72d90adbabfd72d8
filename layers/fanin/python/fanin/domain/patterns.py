"""Event patterns of EventBridge: whether an event matches one, judged without asking EventBridge.

The language is that of Amazon EventBridge's "Comparison operators for use in event patterns". AWS may add
operators. What a pattern says by an operator that is not known here is neither true nor false, but None.
"""

from __future__ import annotations

import ipaddress
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from fanin.errors import InvalidRequest

Pattern: TypeAlias = Mapping[str, Any]
"""Field → lists of accepted values and operators, or a pattern for the fields below it."""
Verdict: TypeAlias = bool | None
"""Whether something matches; None if that cannot be told here."""
Path: TypeAlias = tuple[str, ...]

_OR: Final = "$or"
_COMBINATIONS: Final = 1_000
"""Most combinations of ``$or`` that EventBridge takes."""
_DEEPEST: Final = 64
"""Fields inside of each other; so few are judged without more of the stack than a process has."""
_EXISTS: Final = "exists"
_ANYTHING_BUT: Final = "anything-but"
_IGNORE_CASE: Final = "equals-ignore-case"
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def check(pattern: Pattern) -> None:
    """Refuse what cannot be an event pattern; EventBridge checks the operators and what they take.

    Raises:
        InvalidRequest: a pattern or a list is empty, a value is not in a list, an operator is not alone,
            fields are too deep, or ``$or`` makes too many combinations.
    """
    _check(pattern, _DEEPEST)
    _alternatives(pattern)


def _check(pattern: Pattern, deep: int) -> None:
    if not deep:
        raise InvalidRequest(f"an event pattern must have at most {_DEEPEST} fields inside of each other")
    if not isinstance(pattern, Mapping) or not pattern:
        raise InvalidRequest("an event pattern must be an object that names at least one field")
    for name, wanted in pattern.items():
        if isinstance(wanted, Mapping):
            _check(wanted, deep - 1)
        elif _is_or(name, wanted):
            for one in wanted:
                _check(one, deep - 1)
        elif not isinstance(wanted, list) or not wanted:
            raise InvalidRequest(
                f"{name[:100]!r} of an event pattern must be an object, or a list of accepted values that is"
                " not empty"
            )
        elif any(isinstance(choice, Mapping) and len(choice) != 1 for choice in wanted):
            raise InvalidRequest(
                f"{name[:100]!r} of an event pattern must have operators of one field each, such as"
                ' {"prefix": "a"}'
            )


def unknown_operators(pattern: Pattern) -> set[str]:
    """The operators of a checked pattern that are not known here."""
    leaves = (leaf for one in _alternatives(pattern) for leaf in one.values())
    used = {name for leaf in leaves for choice in leaf if isinstance(choice, Mapping) for name in choice}
    return used - {*_OPERATORS, _EXISTS}


def matches(pattern: Pattern, event: Mapping[str, Any]) -> Verdict:
    """Whether an event matches a pattern.

    Args:
        pattern: checked.
        event: as EventBridge delivers it.
    """
    return _some(_object(_tree(one), event) for one in _alternatives(pattern))


def _alternatives(pattern: Pattern, above: Path = ()) -> list[dict[Path, list[Any]]]:
    """What a pattern asks of each path, once for each combination of the choices that ``$or`` gives.

    EventBridge reads patterns like this. Of a path that is named twice, the later list counts.

    Raises:
        InvalidRequest: there are more combinations than EventBridge takes.
    """
    found: list[dict[Path, list[Any]]] = [{}]
    for name, wanted in pattern.items():
        at = (*above, *name.split("."))
        if _is_or(name, wanted):
            parts = [part for one in wanted for part in _alternatives(one, above)]
        else:
            parts = _alternatives(wanted, at) if isinstance(wanted, Mapping) else [{at: wanted}]
        if len(found) * len(parts) > _COMBINATIONS:
            raise InvalidRequest(f"an event pattern must have at most {_COMBINATIONS:,} combinations of $or")
        found = [{**one, **part} for one in found for part in parts]
    return found


def _tree(wanted: Mapping[Path, list[Any]]) -> dict[str, Any]:
    """The paths as a tree; one that asks for a value and for fields of the same thing asks the impossible."""
    tree: dict[str, Any] = {}
    for path, leaf in wanted.items():
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
            if not isinstance(node, dict):
                return {path[0]: []}
        if isinstance(node.get(path[-1]), dict):
            return {path[0]: []}
        node[path[-1]] = leaf
    return tree


def _object(tree: Mapping[str, Any], value: Mapping[str, Any]) -> Verdict:
    verdicts = {_field(wanted, value.get(name, [])) for name, wanted in tree.items()}
    return False if False in verdicts else None if None in verdicts else True


def _field(wanted: Any, value: Any) -> Verdict:
    found = list(_leaves(value))
    if isinstance(wanted, Mapping):
        inner = [one for one in found if isinstance(one, Mapping)]
        return _some(_object(wanted, one) for one in inner or [{}])
    values = [one for one in found if not isinstance(one, Mapping)]
    return _some(_choice(choice, values) for choice in wanted)


def _leaves(value: Any) -> Iterator[Any]:
    """A value, or what is in its lists, however deeply they are nested. An event is not checked for that."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += reversed(one)
        else:
            yield one


def _choice(choice: Any, values: Sequence[Any]) -> Verdict:
    if not isinstance(choice, Mapping):
        return any(_same(choice, value) for value in values)
    ((name, operand),) = choice.items()
    if name == _EXISTS:
        return bool(values) is operand
    judge = _OPERATORS.get(name)
    return _some(None if judge is None else judge(operand, value) for value in values)


def _same(wanted: Any, value: Any) -> bool:
    """Equality in JSON: true is not 1."""
    return isinstance(wanted, bool) is isinstance(value, bool) and bool(wanted == value)


def _prefix(operand: Any, value: Any) -> Verdict:
    return _affix(operand, value, str.startswith)


def _suffix(operand: Any, value: Any) -> Verdict:
    return _affix(operand, value, str.endswith)


def _affix(operand: Any, value: Any, stands: Callable[[str, str], bool]) -> Verdict:
    if isinstance(operand, Mapping):
        if operand.keys() != {_IGNORE_CASE}:
            return None
        text = operand[_IGNORE_CASE]
        return _cased(text, value, stands)
    return isinstance(value, str) and isinstance(operand, str) and stands(value, operand)


def _equals_ignore_case(operand: Any, value: Any) -> Verdict:
    return _cased(operand, value, operator.eq)


def _cased(operand: Any, value: Any, compare: Callable[[str, str], bool]) -> Verdict:
    if not isinstance(value, str) or not isinstance(operand, str):
        return False
    return compare(value.lower(), operand.lower()) or compare(value.upper(), operand.upper())


def _wildcard(operand: Any, value: Any) -> Verdict:
    """Whether a text is like one with ``*`` in it, in a time that is linear in the text for each ``*``."""
    if not isinstance(value, str) or not isinstance(operand, str):
        return False
    first, *others = _literals(operand)
    if not others:
        return value == first
    *between, last = others
    if not value.startswith(first) or not value.endswith(last):
        return False
    at, end = len(first), len(value) - len(last)
    for literal in between:
        at = value.find(literal, at, max(at, end))
        if at < 0:
            return False
        at += len(literal)
    return at <= end


def _literals(wildcard: str) -> list[str]:
    r"""What stands between the ``*``; ``\*`` and ``\\`` are the characters themselves."""
    found, escaped = [""], False
    for character in wildcard:
        if character == "*" and not escaped:
            found.append("")
        elif character == "\\" and not escaped:
            escaped = True
            continue
        else:
            found[-1] += character
        escaped = False
    return found


def _numeric(operand: Any, value: Any) -> Verdict:
    if not _is_number(value):
        return False
    if not isinstance(operand, list) or not operand or len(operand) % 2:
        return None
    pairs = list(zip(operand[::2], operand[1::2], strict=True))
    if not all(isinstance(name, str) and name in _COMPARISONS and _is_number(bound) for name, bound in pairs):
        return None
    return all(_COMPARISONS[name](value, bound) for name, bound in pairs)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cidr(operand: Any, value: Any) -> Verdict:
    if not isinstance(value, str) or not isinstance(operand, str):
        return False
    try:
        return ipaddress.ip_address(value) in ipaddress.ip_network(operand, strict=False)
    except ValueError:  # the value is not an address
        return False


def _anything_but(operand: Any, value: Any) -> Verdict:
    if not isinstance(operand, Mapping):
        refused = operand if isinstance(operand, list) else [operand]
        return not any(_same(one, value) for one in refused)
    if len(operand) != 1:
        return None
    ((name, inner),) = operand.items()
    judge = _OPERATORS.get(name)
    if judge is None:
        return None
    verdict = _some(judge(one, value) for one in (inner if isinstance(inner, list) else [inner]))
    return None if verdict is None else not verdict


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Verdict]]] = {
    _ANYTHING_BUT: _anything_but,
    _IGNORE_CASE: _equals_ignore_case,
    "cidr": _cidr,
    "numeric": _numeric,
    "prefix": _prefix,
    "suffix": _suffix,
    "wildcard": _wildcard,
}
"""Those that look at a value; ``exists`` asks whether there is one."""


def _is_or(name: str, wanted: Any) -> bool:
    several = isinstance(wanted, list) and len(wanted) > 1
    return name == _OR and several and all(isinstance(one, Mapping) for one in wanted)


def _some(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    return True if True in found else None if None in found else False
