"""Condition blocks of IAM policies, evaluated as "IAM JSON policy elements: Condition operators" says.

All operators of a block, and all keys of an operator, must match; of the values of a key, one. What an
emulator does not evaluate is evaluated here: sets of values, missing keys, and tests for their presence.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

Context = Mapping[str, str | tuple[str, ...]]
"""Condition key in lower case → its value, or the values of a key that has several."""

FOR_ALL = "ForAllValues"
WILDCARD = {"*": ".*", "?": "."}
VARIABLE = re.compile(r"\$\{([^}]+)\}")
LITERAL = {"*": "*", "?": "?", "$": "$"}
"""Variables that stand for themselves: ``${*}`` is an asterisk, not a wildcard."""


class UnknownOperator(ValueError):
    """A condition uses an operator that is not evaluated here."""


def as_list(value: object) -> list[str]:
    """A policy may write one value without a list; Booleans and numbers stand for their text."""
    values = value if isinstance(value, list) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in values]


@cache
def _pattern(text: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    # A literal that came from ${*} is marked by a NUL before it.
    parts = re.findall(r"\0.|[*?]|[^\0*?]+", text, re.DOTALL)
    source = "".join(WILDCARD.get(part) or re.escape(part.removeprefix("\0")) for part in parts)
    return re.compile(source, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def matches(text: str, pattern: str, *, ignore_case: bool = False) -> bool:
    """Whether a text matches a pattern with ``*`` (any text) and ``?`` (one character)."""
    return _pattern(pattern, ignore_case=ignore_case).fullmatch(text) is not None


def arn_matches(arn: str, pattern: str) -> bool:
    """ArnLike, and ArnEquals alike: each of the six parts is compared by itself."""
    given, wanted = arn.split(":", 5), pattern.split(":", 5)
    return len(given) == len(wanted) and all(map(matches, given, wanted))


def substituted(text: str, context: Context) -> str | None:
    """A text of a policy with its variables replaced; None if one has no value, so nothing can match."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        if match[1] in LITERAL:
            return "\0" + LITERAL[match[1]]
        found = context.get(match[1].lower())
        if isinstance(found, str):
            return re.sub(r"([*?])", "\0\\1", found)
        missing = True
        return ""

    result = VARIABLE.sub(value, text)
    return None if missing else result


def _plain(pattern: str) -> str:
    return pattern.replace("\0", "")


OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda given, wanted: given == _plain(wanted),
    "StringLike": matches,
    "ArnEquals": arn_matches,
    "ArnLike": arn_matches,
    "Bool": lambda given, wanted: given.lower() == wanted.lower(),
}


def holds(block: Mapping[str, Mapping[str, object]], context: Context) -> bool:
    """Whether all conditions of a block match a request.

    Raises:
        UnknownOperator: the block uses an operator that is not evaluated here.
    """
    return all(
        _one(operator, key.lower(), as_list(wanted), context)
        for operator, keys in block.items()
        for key, wanted in keys.items()
    )


def _one(operator: str, key: str, wanted: Sequence[str], context: Context) -> bool:
    of_set, _, name = operator.rpartition(":")
    given = context.get(key)
    if name == "Null":
        # A key without values counts as missing.
        return str(given is None or given == ()).lower() in [value.lower() for value in wanted]
    if of_set not in ("", FOR_ALL) or name not in OPERATORS:
        raise UnknownOperator(operator)
    values = (given,) if isinstance(given, str) else (given or ())
    if not values:
        return of_set == FOR_ALL
    patterns = [pattern for one in wanted if (pattern := substituted(one, context)) is not None]
    # Without a set operator IAM documents keys of one value only; here all values must match, to be strict.
    return all(any(OPERATORS[name](value, pattern) for pattern in patterns) for value in values)
