"""From bytes to checked JSON: what is refused names the place, as a JSON pointer, and what is expected."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from fanin.errors import InvalidRequest, RequestTooLarge
from fanin.wire.components import COMPONENTS
from fanin.wire.json_types import Json, Schema
from fanin.wire.shapes import Shape

Check: TypeAlias = Callable[[Any, str], Any]
"""Takes a value and what to call it, returns the value or raises InvalidRequest or RequestTooLarge."""

_SHOWN: Final = 300  # characters of a message, which may quote the request


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
    value: Json = _check_of(shape)(_load(body), "the body")
    return value


def compiled(schema: Schema) -> Check:
    """Make the check of a schema; fastjsonschema writes Python code for it, so keep it."""
    import fastjsonschema  # noqa: PLC0415  a cold start needs it with its first request only

    validate: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False)

    def check(value: Any, what: str) -> Any:
        try:
            return validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            pointer = "/".join(["", *error.path[1:]])
            complaint = str(error.message).removeprefix(str(error.name)).strip()
            message = f"{pointer or what} {complaint}"[:_SHOWN]
            raise (RequestTooLarge if error.rule == "maxItems" else InvalidRequest)(message) from error

    return check


@cache
def _check_of(shape: Shape[Any]) -> Check:
    return compiled({**shape.schema, "components": {"schemas": COMPONENTS}})


def _load(body: str | bytes) -> Any:
    try:
        text = body if isinstance(body, str) else body.decode()
        value = json.loads(text, parse_float=_number, parse_constant=_no_number)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {str(error)[:_SHOWN]}") from error
    return value


def _number(text: str) -> float:
    """Read ``1.0`` and ``1e3`` as the integers that they are in JSON Schema."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")
