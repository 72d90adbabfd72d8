"""The schemas of the OpenAPI document: those of requests are strict, and those of answers may grow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from fanin.entry.http import descriptions
from fanin.entry.http.docstrings import described, summary
from fanin.entry.http.examples import EXAMPLES
from fanin.entry.http.route import Route
from fanin.wire.components import SHAPES
from fanin.wire.json_types import Schema
from fanin.wire.problems import PROBLEM
from fanin.wire.shapes import REFERENCE, Shape

_ANSWERED: Final = "Answered"
"""Ends the name of a component in answers whose name is taken by the one in requests."""


class Schemas:
    """The components of a route table, and references to them.

    A request with a field that is not known is refused, and an answer may get fields that its reader does not
    know yet. So an object that is part of both has two schemas.

    Args:
        routes: the table.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        by_name = {shape.component: shape for shape in SHAPES}
        bodies = [route.body for route in routes if route.body]
        answers = [PROBLEM, *(route.answer for route in routes if route.answer)]
        self._asked = _reached(bodies, by_name)
        self._answered = _reached(answers, by_name)
        self._schemas = {
            shape.component: _with_words(shape)
            for shape in SHAPES
            if shape.component in self._asked | self._answered
        }

    def components(self) -> dict[str, Schema]:
        """The definition of each component by its name in the document."""
        asked = {name: self._schemas[name] for name in self._schemas if name in self._asked}
        answered = {
            self._name_in_answers(name): self._open(self._schemas[name])
            for name in self._schemas
            if name in self._answered
        }
        return dict(sorted((asked | answered).items()))

    def of_answer(self, shape: Shape[Any]) -> Schema:
        """The schema of an answer's body."""
        found: Schema = self._renamed(shape.schema)
        return found

    def _name_in_answers(self, name: str) -> str:
        return name + _ANSWERED if name in self._asked else name

    def _open(self, definition: Schema) -> Schema:
        """A definition for answers, which does not exclude further fields."""
        found: Schema = self._renamed(deepcopy(definition))
        for schema in _objects(found):
            if schema.get("additionalProperties") is False:
                del schema["additionalProperties"]
        return found

    def _renamed(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._renamed(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        renamed = {name: self._renamed(value) for name, value in schema.items()}
        if isinstance(reference := schema.get("$ref"), str):
            renamed["$ref"] = REFERENCE + self._name_in_answers(reference.removeprefix(REFERENCE))
        return renamed


def _with_words(shape: Shape[Any]) -> Schema:
    """The definition of a shape with descriptions of the object and its fields, and an example."""
    # Fields of one kind share one schema, so each gets a copy of its own before it gets words of its own
    fields = {name: deepcopy(schema) for name, schema in shape.definition["properties"].items()}
    definition = {**deepcopy(shape.definition), "properties": fields}
    words = described(shape.stands_for)
    for name, schema in fields.items():
        owners = (shape.component, *(one.__name__ for one in shape.stands_for))
        own = (descriptions.FIELDS.get(f"{owner}.{name}") for owner in owners)
        text = (
            next(filter(None, own), None)
            or schema.get("description")
            or words.get(name)
            or descriptions.FIELDS.get(name)
        )
        if text:
            schema["description"] = text[:1].upper() + text[1:]
    if shape.stands_for:
        definition["description"] = summary(shape.stands_for[0])
    if shape.component in EXAMPLES:
        definition["examples"] = [EXAMPLES[shape.component]]
    return definition


def _reached(shapes: Iterable[Shape[Any]], by_name: Mapping[str, Shape[Any]]) -> set[str]:
    """Names of the components that shapes refer to, themselves included."""
    found: set[str] = set()
    waiting = [shape.component for shape in shapes]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(by_name[name].definition)
    return found


def _references(schema: Any) -> Iterator[str]:
    for one in _objects(schema):
        if isinstance(reference := one.get("$ref"), str):
            yield reference.removeprefix(REFERENCE)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects within a schema, itself included."""
    if isinstance(value, dict):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _objects(one)
