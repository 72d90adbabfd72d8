"""JSON as text: strictly read from outside, and written in few bytes, with only what JSON has.

Python's parser keeps the last of two fields of one name, takes NaN, and ends with a RecursionError where
arrays are nested deeply. Here each of these is a refusal, which concerns the one text that was read. Queues
and the event bus count bytes, so what goes there is written without ASCII escapes.
"""

import json
import math
import re
from typing import Any, Final, NoReturn

from fanin.errors import InvalidRequest

MAX_DEPTH: Final = 100
"""How deeply objects and arrays may be nested; code that walks a value recursively is safe with that."""

_TOO_LARGE: Final = "a number is too large"
_TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} levels deep"


def read_json(body: str | bytes, *, any_text: bool = False) -> Any:
    """Read the value of a JSON text.

    Args:
        body: the text, or its bytes in UTF-8.
        any_text: whether strings may have half a surrogate pair, because whoever reads them looks for it.

    Returns:
        The value; ``1.0`` and ``1e3`` are the integers that they are in JSON Schema.

    Raises:
        InvalidRequest: the text is not JSON (RFC 8259), or not UTF-8; or a field occurs twice in an object, a
            number does not fit, a string has half a surrogate pair, or the nesting is too deep.
    """
    try:
        text = body if isinstance(body, str) else body.decode()
        value = json.loads(text, object_pairs_hook=_fields, parse_float=_number, parse_constant=_no_number)
        if text.count("[") + text.count("{") > MAX_DEPTH:
            _check_depth(value)
        if not any_text and "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        expected = error.msg[:1].lower() + error.msg[1:]
        where = f"at line {error.lineno}, column {error.colno}"
        raise _not_json(f"{expected} {where}" if text.strip() else "it is empty") from error
    except UnicodeDecodeError as error:
        raise _not_json(f"byte {error.start} is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise _not_json("a string has one half of a surrogate pair without the other") from error
    except RecursionError as error:
        raise _not_json(_TOO_DEEP) from error
    except ValueError as error:
        raise _not_json(_TOO_LARGE) from error
    return value


def _check_depth(value: Any) -> None:
    """Go down level by level, without recursion."""
    level = _nested([value])
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _nested(parent)]
    if level:
        raise _not_json(_TOO_DEEP)


def _nested(parent: dict[str, Any] | list[Any]) -> list[Any]:
    """The objects and arrays that are right within one."""
    values = parent.values() if isinstance(parent, dict) else parent
    return [value for value in values if isinstance(value, dict | list)]


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        for twice, _ in pairs:
            if twice in seen:
                break
            seen.add(twice)
        raise InvalidRequest(f"the body has the field {twice[:64]!r} twice in one object; send it once")
    return fields


def _not_json(why: str) -> InvalidRequest:
    return InvalidRequest(f"the body is not JSON: {why}")


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _not_json(_TOO_LARGE)
    return int(value) if value.is_integer() else value


def _no_number(text: str) -> NoReturn:
    raise _not_json(f"{text} is not a number")


_ESCAPED: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""Half a surrogate pair has no UTF-8, and SQS refuses the other two."""


def compact(value: object, what: str = "the value") -> str:
    r"""Write a value as JSON that SQS and EventBridge take as it is.

    Text keeps its characters, since an ASCII escape takes six bytes, and up to twelve where UTF-8 takes four.
    Only characters that cannot be sent are escaped. See "SendMessage", Amazon SQS API Reference.

        >>> compact({"a": "é", "b": ["\ud83d", "\uffff"]})
        '{"a":"é","b":["\\ud83d","\\uffff"]}'

    Raises:
        InvalidRequest: as ``json_text`` does.
    """
    text = json_text(what, value, separators=(",", ":"))
    return _ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def json_text(what: str, value: object, **style: Any) -> str:
    """A value as JSON, in the style that ``json.dumps`` has by default.

    Raises:
        InvalidRequest: JSON has no such value: NaN and infinities, sets, dates, bytes and other objects.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, **style)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"{what} cannot be written as JSON: {error}; use text, numbers, lists, maps, true, false and null"
        ) from error
