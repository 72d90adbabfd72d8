"""JSON types: how one value stands in JSON, which JSON is allowed, and how it is written and read.

Points in time are milliseconds since the epoch, written as RFC 3339.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from fanin.domain import limits
from fanin.domain.ids import MAX_BATCH_ID
from fanin.errors import InvalidRequest

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_TIME: Final = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"


def encode_time(ms: int) -> str:
    """Write milliseconds since the epoch as ``2026-11-21T09:40:00.123Z``."""
    moment = (_EPOCH + ms * _MILLISECOND).isoformat(timespec="milliseconds")
    return moment.removesuffix("+00:00") + "Z"


def decode_time(text: str) -> int:
    """Read an RFC 3339 timestamp, of any offset, as milliseconds since the epoch.

    Raises:
        InvalidRequest: the text is not a timestamp.
    """
    if re.fullmatch(_TIME, text, re.ASCII):
        try:
            return (datetime.fromisoformat(text.upper()) - _EPOCH) // _MILLISECOND
        except (ValueError, OverflowError):
            pass  # the form is right, the date is not: the thirtieth of February
    raise InvalidRequest(f"{text[:64]!r} is not an RFC 3339 timestamp such as 2026-11-21T09:40:00.123Z")


Json: TypeAlias = dict[str, Any]
Schema: TypeAlias = dict[str, Any]

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

NO_DEFAULT: Final = object()


def _itself(value: Any) -> Any:
    return value


class JsonType(Generic[T]):
    """How one kind of value stands in JSON.

    Attributes:
        schema: JSON Schema (draft 2020-12) of what is allowed.
        encode: writes a value as JSON.
        decode: reads JSON that is of the schema; else it may raise KeyError, TypeError or ValueError.
        name: of the field on the wire, where it is not that of the attribute.
        omit_empty: whether the field is left out where it is empty; a request always leaves None out.
        omit: a value for which a request leaves the field out.
        default: what a request means that leaves the field out, where the attribute has no default.
    """

    name: str | None = None
    omit_empty: bool = False
    omit: Any = NO_DEFAULT
    default: Any = NO_DEFAULT

    def __init__(
        self, schema: Schema, encode: Callable[[T], Any] = _itself, decode: Callable[[Any], T] = _itself
    ) -> None:
        self.schema = schema
        self.encode = encode
        self.decode = decode

    def with_keywords(self, **keywords: object) -> Self:
        """The same type with more keywords of JSON Schema, such as ``description`` or ``pattern``."""
        return self._with(schema=self.schema | keywords)

    def described(self, description: str, **keywords: object) -> Self:
        """The same type with a description, and more keywords."""
        return self.with_keywords(description=description, **keywords)

    def called(self, name: str) -> Self:
        """The same type for a field that has another name on the wire."""
        return self._with(name=name)

    def left_out_if_empty(self) -> Self:
        """The same type for a field that is left out where it is None or empty."""
        return self._with(omit_empty=True)

    def left_out_if(self, value: T) -> Self:
        """The same type for a field that a request leaves out where it has this value, its default.

        A request that was sent before the field existed is then the same request, under the same key.
        """
        return self._with(omit=value)

    def or_else(self, default: T) -> Self:
        """The same type for a field that a request may leave out, though its attribute has no default."""
        return self._with(default=default)

    def _with(self, **changes: object) -> Self:
        changed = copy(self)
        vars(changed).update(changes)
        return changed


def text(most: int | None = None, *, least: int = 0) -> JsonType[str]:
    """Text of ``least`` to ``most`` characters."""
    bounds = {"minLength": least, "maxLength": most}
    return JsonType({"type": "string"} | {name: bound for name, bound in bounds.items() if bound})


def whole(low: int, high: int | None = None) -> JsonType[int]:
    """A whole number from ``low`` to ``high``."""
    return JsonType({"type": "integer", "minimum": low} | ({"maximum": high} if high is not None else {}))


def number(low: float, high: float) -> JsonType[float]:
    """A number from ``low`` to ``high``."""
    return JsonType({"type": "number", "minimum": low, "maximum": high})


def one_of(kind: type[E]) -> JsonType[E]:
    """A member of an enumeration, written as its value."""
    return JsonType({"type": "string", "enum": [one.value for one in kind]}, lambda one: one.value, kind)


def or_null(kind: JsonType[T]) -> JsonType[T | None]:
    """The same, or null for None."""
    if "type" in kind.schema:
        members = {"enum": [*kind.schema["enum"], None]} if "enum" in kind.schema else {}
        schema = kind.schema | {"type": [kind.schema["type"], "null"]} | members
    else:  # a shape, which stands elsewhere in the document
        schema = {"anyOf": [kind.schema, {"type": "null"}]}
    return JsonType(
        schema,
        lambda value: None if value is None else kind.encode(value),
        lambda value: None if value is None else kind.decode(value),
    )


def many(kind: JsonType[T], most: int | None = None, *, least: int = 0) -> JsonType[Sequence[T]]:
    """An array, read as a tuple."""
    bounds = {"minItems": least, "maxItems": most}
    schema = {"type": "array", "items": kind.schema}
    plain = kind.encode is _itself and kind.decode is _itself
    return JsonType(
        schema | {name: bound for name, bound in bounds.items() if bound},
        list if plain else lambda values: [kind.encode(value) for value in values],
        tuple if plain else lambda values: tuple(kind.decode(value) for value in values),
    )


def map_of(kind: JsonType[T], **keywords: object) -> JsonType[Mapping[str, T]]:
    """An object whose fields may have any name, and have values of one type."""
    plain = kind.encode is _itself and kind.decode is _itself
    return JsonType(
        {"type": "object", "additionalProperties": kind.schema, **keywords},
        dict if plain else lambda values: {name: kind.encode(value) for name, value in values.items()},
        _itself if plain else lambda values: {name: kind.decode(value) for name, value in values.items()},
    )


_VISIBLE: Final = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
INDIVISIBLE: Final = "x-indivisible"
"""Keyword of a list whose values belong together, so that several calls cannot share them."""
EACH_ALONE: Final = "x-each-alone"
"""Keyword of a list whose entries are read one by one, so that a bad one is refused alone."""
ANYTHING: Final[JsonType[Any]] = JsonType({})
TEXT: Final = text()
CHANNEL: Final = text(limits.MAX_CHANNEL, least=1)
BOOLEAN: Final[JsonType[bool]] = JsonType({"type": "boolean"})
INTEGER: Final[JsonType[int]] = JsonType({"type": "integer"})
NATURAL: Final = whole(0)
OBJECT: Final[JsonType[Mapping[str, Any]]] = JsonType({"type": "object"}, dict)
UUID: Final[JsonType[str]] = JsonType({"type": "string", "format": "uuid"})
TIME: Final[JsonType[int]] = JsonType({"type": "string", "format": "date-time"}, encode_time, decode_time)
"""A point in time, milliseconds since the epoch."""
TIME_IN_SECONDS: Final[JsonType[int]] = JsonType(
    TIME.schema, lambda seconds: encode_time(seconds * 1000), lambda moment: decode_time(moment) // 1000
)
"""A point in time, seconds since the epoch."""
CURSOR: Final = or_null(TEXT)
BATCH_ID: Final = whole(0, MAX_BATCH_ID)
ITEM_ID: Final = TEXT.described(
    "<batch id>:<group id>:<index>", examples=["7823146098425856:00000000-0000-8010-8000-000000000000:0"]
)
IDEMPOTENCY_KEY: Final[JsonType[str]] = JsonType(
    {
        "type": "string",
        "minLength": 1,
        "description": "however often a call is repeated with the same key, it takes effect once; any text of"
        f" 1 to {limits.MAX_IDEMPOTENCY_KEY} characters; percent-encode the percent sign, and whatever is not"
        " visible ASCII, as UTF-8 (RFC 3986)",
    },
    lambda key: quote(key, safe=_VISIBLE),
    lambda header: unquote(header, errors="surrogateescape"),
)
"""An idempotency key as it stands in a header, which carries visible ASCII only."""
METADATA: Final = map_of(
    text(limits.MAX_METADATA_VALUE),
    maxProperties=limits.MAX_METADATA,
    propertyNames={"maxLength": limits.MAX_METADATA_KEY},
)
