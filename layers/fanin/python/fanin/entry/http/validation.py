"""From bytes to checked JSON, and parameters against their schemas; a refusal explains itself in a sentence.

The sentence names the place of the value, what was expected, and what was sent.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from fanin.errors import InvalidRequest, RequestTooLarge
from fanin.wire.json_text import read_json
from fanin.wire.json_types import EACH_ALONE, INDIVISIBLE, Json, Schema
from fanin.wire.shapes import SHAPES, Shape

_QUOTED: Final = 64  # characters of what came
_POINTER: Final = 200  # characters
_NAMES: Final = 3  # unknown fields

_SIZES: Final = {"minLength", "maxLength", "minItems", "maxItems"}
_FORMATS: Final = {
    "date-time": "an RFC 3339 timestamp such as 2026-11-21T09:40:00.123Z",
    "uuid": "a UUID such as 00000000-0000-8010-8000-000000000000",
}


class RequestPart(NamedTuple):
    """A part of a request that has a schema of its own.

    Attributes:
        name: of the whole.
        field: what it consists of.
        nested: whether its fields have fields; a JSON pointer (RFC 6901) then says where a value stands.
    """

    name: str
    field: str
    nested: bool = False


BODY: Final = RequestPart("the body", "field", nested=True)
QUERY: Final = RequestPart("the query", "parameter")
HEADERS: Final = RequestPart("the headers", "header")


class Mismatch(NamedTuple):
    """A value that is not of its schema.

    Attributes:
        rule: the keyword of the schema that refuses the value.
        schema: where the keyword stands.
        value: what came.
        path: names and indices that lead from the whole to the value.
    """

    rule: str
    schema: Schema
    value: Any
    path: tuple[str, ...]

    @property
    def too_many(self) -> bool:
        """Whether there is more than one call takes, so that several would take it."""
        return self.rule == "maxItems" and INDIVISIBLE not in self.schema

    def within(self, part: RequestPart) -> str:
        """Say what is wrong: ``/count must be a whole number from 1 to 9, not 'x'``."""
        return f"{_place(self.path, part)} {self._complaint(part.field)}"

    def _complaint(self, field: str) -> str:
        match self.rule:
            case "required":
                missing = [name for name in self.schema["required"] if name not in self.value]
                return f"must have the {_named(missing, field)}"
            case "additionalProperties":
                known = self.schema["properties"]
                unknown = [name for name in self.value if name not in known]
                instead = f"known are {', '.join(known)}" if known else f"this call takes no {field}s"
                return f"has the unknown {_named(unknown, field)}; {instead}"
            case "minProperties" | "maxProperties":
                return f"must have {_size(self.schema, 'Properties', 'field')}, not {len(self.value)}"
            case "propertyNames":
                return f"must have names {self._misnamed()}"
            case "maxItems" if self.too_many:
                return f"must be {_expected(self.schema)}, not {self._came()}; send the rest in another call"
            case _:
                return f"must be {_expected(self.schema)}, not {self._came()}"

    def _misnamed(self) -> str:
        names = self.schema["propertyNames"]
        if pattern := names.get("pattern"):
            bad = [name for name in self.value if not re.search(pattern, name)]
            return f"that match {pattern}, not {_named(bad, 'name')}"
        return f"of {_size(names, 'Length', 'character')}, not of {max(map(len, self.value))}"

    def _came(self) -> str:
        if self.rule in _SIZES:
            return f"of {len(self.value)}" if self.value else "empty"
        return _shown(self.value)


def _place(path: tuple[str, ...], part: RequestPart) -> str:
    if not path:
        return part.name
    if not part.nested:
        return f"{part.field} {path[0]!r}"
    return _clipped("".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path), _POINTER)


def _named(names: list[str], what: str) -> str:
    shown = ", ".join(repr(_clipped(name)) for name in names[:_NAMES])
    return f"{what if len(names) == 1 else what + 's'} {shown}{' …' if len(names) > _NAMES else ''}"


def _expected(schema: Schema) -> str:
    if "enum" in schema:
        return "one of " + ", ".join("null" if one is None else one for one in schema["enum"])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    # Every whole number is a number.
    kinds = [kind for kind in types if not (kind == "integer" and "number" in types)]
    return " or ".join(_kind(kind, schema) for kind in kinds)


def _kind(kind: str, schema: Schema) -> str:
    match kind:
        case "integer":
            return "a whole number" + _range(schema)
        case "number":
            return "a number" + _range(schema)
        case "string" if "format" in schema:
            return _FORMATS[schema["format"]]
        case "string":
            size = _size(schema, "Length", "character")
            matching = f" that matches {schema['pattern']}" if "pattern" in schema else ""
            return "text" + (f" of {size}" if size else "") + matching
        case "array":
            size = _size(schema, "Items", "value")
            return "an array" + (f" of {size}" if size else "")
        case _:
            return {"object": "an object", "boolean": "true or false"}.get(kind, kind)


def _range(schema: Schema) -> str:
    match schema:
        case {"minimum": low, "maximum": high}:
            return f" from {low} to {high}"
        case {"exclusiveMinimum": low, "maximum": high}:
            return f" above {low} and at most {high}"
        case {"minimum": low}:
            return f" of at least {low}"
        case _:
            return ""


def _size(schema: Schema, of: str, unit: str) -> str:
    low, high = schema.get(f"min{of}"), schema.get(f"max{of}")
    if low is None and high is None:
        return ""
    size = f"{low} to {high}" if low and high else f"at most {high}" if high else f"at least {low}"
    return f"{size} {unit}{'' if (high or low) == 1 else 's'}"


def _shown(value: Any) -> str:
    match value:
        case str():
            return repr(_clipped(value))
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            return _clipped(json.dumps(value))


def _clipped(text: str, most: int = _QUOTED) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


Check: TypeAlias = Callable[[Any], Any]
"""Returns the value it is given, or raises InvalidRequest or RequestTooLarge."""

T = TypeVar("T")


def parse(shape: Shape[T], body: str | bytes) -> T:
    """Read the value that a JSON body stands for.

    Raises:
        InvalidRequest: the body is not JSON, or not of the shape.
        RequestTooLarge: an array is longer than allowed.
    """
    return shape.decode(checked(shape, body))


def checked(shape: Shape[Any], body: str | bytes) -> Json:
    """Read a JSON body and check it against a shape; raises like ``parse``."""
    alone = any(EACH_ALONE in kind.schema for kind in shape.fields.values())
    value: Json = _check_of(shape)(read_json(body, any_text=alone))
    return value


def compiled(schema: Schema, part: RequestPart) -> Check:
    """Make the check of a part of requests; fastjsonschema writes Python code for it, so keep it."""
    import fastjsonschema  # noqa: PLC0415  a cold start needs it with its first request only

    validate: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False)

    def check(value: Any) -> Any:
        try:
            return validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            mismatch = Mismatch(str(error.rule), error.definition, error.value, tuple(error.path[1:]))
            refusal = RequestTooLarge if mismatch.too_many else InvalidRequest
            raise refusal(mismatch.within(part)) from error

    return check


@cache
def _check_of(shape: Shape[Any]) -> Check:
    definitions = {name: _but_entries(one.definition) for name, one in SHAPES.items()}
    return compiled({**shape.schema, "components": {"schemas": definitions}}, BODY)


def _but_entries(definition: Schema) -> Schema:
    """The definition, with any entries allowed in lists whose entries are checked one by one later."""
    fields = {
        name: {**schema, "items": {}} if EACH_ALONE in schema else schema
        for name, schema in definition.get("properties", {}).items()
    }
    return {**definition, "properties": fields} if fields else definition
