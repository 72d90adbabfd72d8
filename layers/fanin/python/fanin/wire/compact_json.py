"""Writing JSON: in few bytes for queues and the event bus, which count them; and only what JSON has."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from fanin.errors import InvalidRequest

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
    text = _written(what, value, separators=(",", ":"))
    return _ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def json_text(what: str, value: object) -> str:
    """A value as JSON.

    Raises:
        InvalidRequest: JSON has no such value: NaN and infinities, sets, dates, bytes and other objects.
    """
    return _written(what, value)


def _written(what: str, value: object, **style: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, **style)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"{what} cannot be written as JSON: {error}; use text, numbers, lists, maps, true, false and null"
        ) from error
