"""From bytes to checked JSON, and parameters against their schemas."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from fanin.entry.http.mismatches import BODY, Mismatch, Part, path_to
from fanin.errors import InvalidRequest, RequestTooLarge
from fanin.wire.components import COMPONENTS
from fanin.wire.json_types import Json, Schema
from fanin.wire.shapes import Shape

Check: TypeAlias = Callable[[Any], Any]
"""Returns the value it is given, or raises InvalidRequest or RequestTooLarge."""

T = TypeVar("T")

_TOO_LARGE: Final = "a number is too large"


def parse(shape: Shape[T], body: str | bytes) -> T:
    """Read the value that a JSON body stands for.

    Raises:
        InvalidRequest: the body is not JSON, or not of the shape.
        RequestTooLarge: an array is longer than allowed.
    """
    return shape.decode(checked(shape, body))


def checked(shape: Shape[Any], body: str | bytes) -> Json:
    """Read a JSON body and check it against a shape; raises like ``parse``."""
    value: Json = _check_of(shape)(_load(body))
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
            refusal = RequestTooLarge if error.rule == "maxItems" else InvalidRequest
            raise refusal(mismatch.within(part)) from error

    return check


@cache
def _check_of(shape: Shape[Any]) -> Check:
    return compiled({**shape.schema, "components": {"schemas": COMPONENTS}}, BODY)


def _load(body: str | bytes) -> Any:
    try:
        text = body if isinstance(body, str) else body.decode()
        value = json.loads(text, parse_float=_number, parse_constant=_no_number)
        if "\\ud" in text.lower():
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
        raise _not_json("it is nested too deeply") from error
    except ValueError as error:
        raise _not_json(_TOO_LARGE) from error
    return value


def _not_json(why: str) -> InvalidRequest:
    return InvalidRequest(f"the body is not JSON: {why}")


def _number(text: str) -> float:
    """Read ``1.0`` and ``1e3`` as the integers that they are in JSON Schema."""
    value = float(text)
    if math.isinf(value):
        raise _not_json(_TOO_LARGE)
    return int(value) if value.is_integer() else value


def _no_number(text: str) -> NoReturn:
    raise _not_json(f"{text} is not a number")
