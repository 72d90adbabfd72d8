"""Shapes: JSON objects that are declared once, each beside the value it stands for.

    KEYED_ITEM = answer("KeyedItem", KeyedItem, item=ITEM_ID)

From this one declaration come the component ``Batch`` of the OpenAPI document, the check of requests,
``BATCH.encode(batch)`` and ``BATCH.decode(body)``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from enum import EnumType
from functools import cached_property
from types import NoneType
from typing import Any, Final, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from fanin.wire import json_types as t
from fanin.wire.json_types import NO_DEFAULT, Json, JsonType, Schema

T = TypeVar("T")
Fields: TypeAlias = Mapping[str, JsonType[Any]]
"""JSON types of an object's fields, by their names on the wire."""

REFERENCE: Final = "#/components/schemas/"

SHAPES: Final[dict[str, Shape[Any]]] = {}
"""The shapes declared so far, by their names; a shape comes after those it refers to."""


class Shape(JsonType[T]):
    """A JSON object that has a name, and the value it stands for.

    Args:
        component: its name in the OpenAPI document.
        fields: JSON types of its fields.
        encode: writes a value as JSON.
        decode: reads JSON that has been checked; attributes of the value that come from elsewhere, such as
            from a request's path, are given by keyword.
        required: names of the fields that are always there; by default all.
        lenient: whether unknown fields are ignored instead of refused.
        stands_for: the classes whose attributes the fields are.

    Attributes:
        definition: JSON Schema of the object; ``schema`` refers to it by name.
        stands_for: as given; the OpenAPI document takes descriptions of fields from their docstrings.

    Raises:
        ValueError: another shape has the name.
    """

    decode: Callable[..., T]

    def __init__(
        self,
        component: str,
        fields: Fields,
        encode: Callable[[T], Json],
        decode: Callable[..., T],
        *,
        required: Collection[str] | None = None,
        lenient: bool = False,
        stands_for: Iterable[type[Any]] = (),
    ) -> None:
        super().__init__({"$ref": REFERENCE + component}, encode, decode)
        self.component = component
        self.fields = fields
        self.stands_for = tuple(stands_for)
        self.required = list(fields if required is None else required)
        self.definition = object_schema(fields, self.required, lenient=lenient)
        if SHAPES.setdefault(component, self) is not self:
            raise ValueError(f"two shapes are called {component}; name one after what it is for")


class Inline(JsonType[T]):
    """A shape whose fields stand beside those of the shape it is part of, in the same object."""

    def __init__(self, shape: Shape[T]) -> None:
        super().__init__(shape.schema, shape.encode, shape.decode)
        self.shape = shape


def request(component: str, of: type[T], /, **types: JsonType[Any]) -> Shape[T]:
    """Declare what a caller sends; a field whose attribute has a default may be left out.

    Args:
        component: name in the OpenAPI document.
        of: the dataclass.
        types: JSON types of its attributes, in order. An attribute without one is given to ``decode``.
    """
    return _record(component, of, types, always=False)


def answer(
    component: str,
    of: type[T],
    fields: str = "",
    /,
    *,
    without: Mapping[str, Any] = {},
    shown: Mapping[str, str] = {},
    **types: JsonType[Any],
) -> Shape[T]:
    """Declare what the service says; each field is always there, whatever is in it.

    Args:
        component: name in the OpenAPI document.
        of: the dataclass.
        fields: names of the attributes that are fields, in order; by default all that do not stay inside,
            and then what else has a type. A property of the class is written, and not read.
        without: attributes that stay inside the service, with what they are for whoever reads the answer.
        shown: attribute → property that is written in its place.
        types: JSON types of attributes, where the annotation alone does not say it: it says the type of a
            value, and the shape of a dataclass that this module has declared before.
    """
    listed = fields.split() or [name for name in _attributes(of) if name not in without]
    names = dict.fromkeys([*listed, *types])
    hints = get_type_hints(of)
    hints |= {name: get_type_hints(getattr(of, name).fget)["return"] for name in names.keys() - hints.keys()}
    known = {name: types.get(name) or _type_of(hints[name], name) for name in names}
    return _record(component, of, known, always=True, without=without, shown=shown)


def _type_of(annotation: Any, name: str) -> JsonType[Any]:
    """The JSON type of an attribute by its annotation; an int whose name ends in ``_at`` is a time."""
    inner = get_args(annotation)
    if annotation in _TYPES:
        return t.TIME if annotation is int and name.endswith("_at") else _TYPES[annotation]
    if NoneType in inner:
        return t.or_null(_type_of(inner[0], name))
    if get_origin(annotation) in (tuple, Sequence):
        return t.many(_type_of(inner[0], name))
    if isinstance(annotation, EnumType):
        return t.one_of(annotation)
    return next(shape for shape in SHAPES.values() if shape.stands_for[:1] == (annotation,))


_TYPES: Final[Mapping[Any, JsonType[Any]]] = {
    str: t.TEXT,
    int: t.NATURAL,
    bool: t.BOOLEAN,
    Any: t.ANYTHING,
    Mapping[str, str]: t.map_of(t.TEXT),
    Mapping[str, int]: t.map_of(t.INTEGER),
    Mapping[str, Any]: t.OBJECT,
}


def wrapped(component: str, field: str, kind: JsonType[T]) -> Shape[T]:
    """Declare an object that has one value as its only field, such as a list of receipts."""
    return Shape(
        component,
        {field: kind},
        lambda value: {field: kind.encode(value)},
        lambda body: kind.decode(body[field]),
    )


def plain(
    component: str, required: Fields, optional: Fields | None = None, *, lenient: bool = False
) -> Shape[Json]:
    """Declare an object that stands for no class of its own, and is read as it comes.

    Args:
        component: name in the OpenAPI document.
        required: fields that are always there.
        optional: fields that may be.
        lenient: whether unknown fields are ignored instead of refused.
    """
    known = {**required, **(optional or {})}
    return Shape(component, known, dict, dict, required=required, lenient=lenient)


def object_schema(fields: Fields, required: Iterable[str], *, lenient: bool = False) -> Schema:
    """JSON Schema of an object; ``lenient`` allows fields that it does not name."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {name: kind.schema for name, kind in fields.items()},
        "additionalProperties": lenient,
    }


@dataclass(frozen=True)
class _Field:
    """An attribute, as a field of its own or, if it is inlined, with fields beside the others.

    Attributes:
        attribute: its name in the value.
        shown: what is written: the attribute itself, or a property in its place.
        kind: its JSON type.
        needed: whether it is always there.
        has_default: whether the attribute has a default.
        computed: whether it is a property, which is only written.
    """

    attribute: str
    shown: str
    kind: JsonType[Any]
    needed: bool
    has_default: bool
    computed: bool

    @cached_property
    def name(self) -> str:
        """Its name on the wire."""
        return self.kind.name or self.attribute

    def write(self, value: Any, body: Json) -> None:
        found = getattr(value, self.shown)
        left_out = found is None or found == self.kind.omit or (self.kind.omit_empty and not found)
        if isinstance(self.kind, Inline):
            body |= self.kind.encode(found)
        elif self.needed or not left_out:
            body[self.name] = self.kind.encode(found)

    def read(self, body: Json, into: Json) -> None:
        # What an earlier version did not say yet has the default of its attribute.
        needed = self.needed and not (self.has_default and self.name not in body)
        if isinstance(self.kind, Inline):
            into[self.attribute] = self.kind.decode(body)
        elif needed or body.get(self.name) is not None:
            into[self.attribute] = self.kind.decode(body[self.name])
        elif self.kind.default is not NO_DEFAULT:
            into[self.attribute] = self.kind.default


def _record(
    component: str,
    of: type[T],
    types: Fields,
    *,
    always: bool,
    without: Mapping[str, Any] = {},
    shown: Mapping[str, str] = {},
) -> Shape[T]:
    attributes = _attributes(of)
    parts = [
        _Field(
            name,
            shown.get(name, name),
            kind,
            needed=always or not (attributes[name] or kind.default is not NO_DEFAULT),
            has_default=attributes.get(name, False),
            computed=name not in attributes,
        )
        for name, kind in types.items()
    ]
    stands_for: list[type[Any]] = [of]
    known: dict[str, JsonType[Any]] = {}
    required: list[str] = []
    for part in parts:
        if isinstance(part.kind, Inline):
            known |= part.kind.shape.fields
            stands_for += part.kind.shape.stands_for
            required += part.kind.shape.required
        else:
            known[part.name] = part.kind
            required += [part.name] if part.needed else []

    def encode(value: T) -> Json:
        body: Json = {}
        for part in parts:
            part.write(value, body)
        return body

    def decode(body: Json, **given: Any) -> T:
        values = {**without, **given}
        for part in parts:
            if not part.computed:
                part.read(body, values)
        return of(**values)

    return Shape(component, known, encode, decode, required=required, stands_for=stands_for)


def _attributes(of: type[Any]) -> dict[str, bool]:
    """Attributes of a dataclass, and whether they have a default."""
    return {
        field.name: field.default is not MISSING or field.default_factory is not MISSING
        for field in dataclasses.fields(of)
    }
