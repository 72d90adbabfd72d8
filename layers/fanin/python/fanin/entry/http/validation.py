"""From bytes to checked JSON, and parameters against their schemas."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, TypeVar

from fanin.entry.http.mismatches import BODY, Mismatch, Part, path_to
from fanin.errors import InvalidRequest, RequestTooLarge
from fanin.wire.json_text import read_json
from fanin.wire.json_types import EACH_ALONE, Json, Schema
from fanin.wire.shapes import DEFINITIONS, Shape

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


def compiled(schema: Schema, part: Part) -> Check:
    """Make the check of a part of requests; fastjsonschema writes Python code for it, so keep it."""
    import fastjsonschema  # noqa: PLC0415  a cold start needs it with its first request only

    validate: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False)

    def check(value: Any) -> Any:
        try:
            return validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            mismatch = Mismatch(
                str(error.rule), error.definition, error.value, path_to(str(error.name), value)
            )
            refusal = RequestTooLarge if mismatch.too_many else InvalidRequest
            raise refusal(mismatch.within(part)) from error

    return check


@cache
def _check_of(shape: Shape[Any]) -> Check:
    definitions = {name: _but_entries(definition) for name, definition in DEFINITIONS.items()}
    return compiled({**shape.schema, "components": {"schemas": definitions}}, BODY)


def _but_entries(definition: Schema) -> Schema:
    """The definition, with any entries allowed in lists whose entries are checked one by one later."""
    fields = {
        name: {**schema, "items": {}} if EACH_ALONE in schema else schema
        for name, schema in definition.get("properties", {}).items()
    }
    return {**definition, "properties": fields} if fields else definition
