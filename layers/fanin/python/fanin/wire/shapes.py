"""Shapes: JSON objects that are declared once, each beside the value it stands for.

    BATCH = answer("Batch", Batch, batch_id=BATCH_ID, state=one_of(State), …)

From this one declaration come the component ``Batch`` of the OpenAPI document, the check of what is sent,
``BATCH.encode(batch)`` and ``BATCH.decode(body)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, Final, Generic, TypeVar

from fanin.wire.json_types import NO_DEFAULT, Json, JsonType, Schema

T = TypeVar("T")

REFERENCE: Final = "#/components/schemas/"


class Shape(JsonType[T]):
    """A JSON object that has a name, and the value it stands for.

    Attributes:
        component: its name in the OpenAPI document.
        definition: JSON Schema of the object; ``schema`` refers to it by name.
        decode: reads the object; attributes of the value that come from elsewhere, such as a request's path,
            are given by keyword.
    """

    decode: Callable[..., T]

    def __init__(
        self, component: str, definition: Schema, encode: Callable[[T], Any], decode: Callable[..., T]
    ) -> None:
        super().__init__({"$ref": REFERENCE + component}, encode, decode)
        self.component = component
        self.definition = definition


class Inline(JsonType[T]):
    """A shape whose fields stand beside those of the shape it is part of, in the same object."""

    def __init__(self, shape: Shape[T]) -> None:
        super().__init__(shape.definition, shape.encode, shape.decode)


def request(component: str, of: type[T], **kinds: JsonType[Any]) -> Shape[T]:
    """Declare what a caller sends; a field whose attribute has a default may be left out.

    Args:
        component: name in the OpenAPI document.
        of: the dataclass.
        kinds: JSON types of its attributes, in order. An attribute without one comes from elsewhere.
    """
    optional = {name for name, kind in kinds.items() if kind.default is not NO_DEFAULT}
    return _record(component, of, kinds, required=_needed(of) - optional, without={})


def answer(
    component: str, of: type[T], *, without: Mapping[str, Any] | None = None, **kinds: JsonType[Any]
) -> Shape[T]:
    """Declare what the service says; every field is always there.

    Args:
        component: name in the OpenAPI document.
        of: the dataclass.
        without: attributes that stay inside the service, with what they are for whoever reads the answer.
        kinds: JSON types of its attributes, in order. A property of the class is written, and not read.
    """
    required = {name for name, kind in kinds.items() if not kind.optional}
    return _record(component, of, kinds, required=required, without=without or {})


def wrapped(component: str, field: str, kind: JsonType[T]) -> Shape[T]:
    """Declare an object that has one value as its only field, such as a list of receipts."""
    return Shape(
        component,
        object_schema({field: kind.schema}),
        lambda value: {field: kind.encode(value)},
        lambda body: kind.decode(body[field]),
    )


def plain(
    component: str,
    required: Mapping[str, JsonType[Any]],
    optional: Mapping[str, JsonType[Any]] | None = None,
    *,
    lenient: bool = False,
) -> Shape[Json]:
    """Declare an object that stands for no class of its own, and is read as it comes.

    Args:
        component: name in the OpenAPI document.
        required: fields that are always there.
        optional: fields that may be.
        lenient: whether unknown fields are ignored instead of refused.
    """
    schemas = {name: kind.schema for name, kind in {**required, **(optional or {})}.items()}
    return Shape(component, object_schema(schemas, required, lenient=lenient), dict, dict)


def object_schema(
    properties: Mapping[str, Schema], required: Iterable[str] | None = None, *, lenient: bool = False
) -> Schema:
    """JSON Schema of an object; without ``required`` all its properties must be there."""
    return {
        "type": "object",
        "required": list(properties if required is None else required),
        "properties": dict(properties),
        "additionalProperties": lenient,
    }


def components(shapes: Iterable[Shape[Any]]) -> dict[str, Schema]:
    """Definitions by name.

    Raises:
        ValueError: two shapes have one name.
    """
    found: dict[str, Shape[Any]] = {}
    for shape in shapes:
        if found.setdefault(shape.component, shape) is not shape:
            raise ValueError(f"two shapes are called {shape.component}; name one after what it is for")
    return {name: shape.definition for name, shape in found.items()}


@dataclass(frozen=True)
class _Part(Generic[T]):
    """One attribute of a value, as a record writes and reads it.

    Attributes:
        attribute: its name in the value.
        name: its name on the wire.
        kind: its JSON type.
        required: whether it is always there.
        computed: whether it is a property, which is only written.
    """

    attribute: str
    name: str
    kind: JsonType[T]
    required: bool
    computed: bool

    def write(self, value: Any, body: Json) -> None:
        found = getattr(value, self.attribute)
        if isinstance(self.kind, Inline):
            body |= self.kind.encode(found)
        elif self.required or not (found is None or (self.kind.omit_empty and not found)):
            body[self.name] = self.kind.encode(found)

    def read(self, body: Json, into: Json) -> None:
        if self.computed:
            return
        if isinstance(self.kind, Inline):
            into[self.attribute] = self.kind.decode(body)
        elif self.required or body.get(self.name) is not None:
            into[self.attribute] = self.kind.decode(body[self.name])
        elif self.kind.default is not NO_DEFAULT:
            into[self.attribute] = self.kind.default


def _record(
    component: str,
    of: type[T],
    kinds: Mapping[str, JsonType[Any]],
    *,
    required: Iterable[str],
    without: Mapping[str, Any],
) -> Shape[T]:
    known = {field.name for field in _fields(of)}
    parts = [
        _Part(name, kind.name or name, kind, name in required, name not in known)
        for name, kind in kinds.items()
    ]

    def encode(value: T) -> Json:
        body: Json = {}
        for part in parts:
            part.write(value, body)
        return body

    def decode(body: Json, **given: Any) -> T:
        values = {**without, **given}
        for part in parts:
            part.read(body, values)
        return of(**values)

    return Shape(component, _definition(parts), encode, decode)


def _definition(parts: Iterable[_Part[Any]]) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for part in parts:
        if isinstance(part.kind, Inline):
            properties |= part.kind.schema["properties"]
            required += part.kind.schema["required"]
        else:
            properties[part.name] = part.kind.schema
            required += [part.name] if part.required else []
    return object_schema(properties, required)


def _needed(of: type) -> set[str]:
    """Attributes that have no default."""
    return {
        field.name for field in _fields(of) if field.default is MISSING and field.default_factory is MISSING
    }


def _fields(of: type) -> tuple[Field[Any], ...]:
    return fields(of)
