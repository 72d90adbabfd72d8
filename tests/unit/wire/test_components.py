"""Every shape: what one end reads of JSON that is of the schema, it writes the same."""

import json
from base64 import b64encode
from collections import ChainMap
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fanin.domain.ids import issue
from fanin.entry.http.validation import checked
from fanin.wire.json_types import Json, Schema, encode_time
from fanin.wire.shapes import REFERENCE, SHAPES, Shape

FROM_THE_PATH = {"PutRoute": {"name": "cars"}, "Register": {"topic": "cars", "name": "ka-1"}}
WITH_OTHERS = {"touched_at", "held_more", "attention", "payload"}
"""Fields that other fields of their object decide together with them."""
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


@st.composite
def missing_ranges(draw: st.DrawFn, of: st.SearchStrategy[Json]) -> Json:
    size = draw(st.integers(1, 99))
    group = issue(7, draw(st.integers(0, 2**40 - 100)), size, b"salt-of-a-batch!").prefix
    return {**draw(of), "group": group, "from": 0, "to": size}


@cache
def of_component(name: str) -> st.SearchStrategy[Any]:
    bodies = of_schema(SHAPES[name].definition)
    if name == "Scattered":  # to more recipients than have replied or failed
        return bodies.map(lambda body: {**body, "batch": {**body["batch"], "items": 2**42}})
    return missing_ranges(bodies) if name in {"MissingRange", "MissingKnown"} else bodies


def of_schema(schema: Schema) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911, PLR0912
    """JSON of a schema; objects have all their fields."""
    match schema:
        case {"$ref": name}:
            return of_component(name.removeprefix(REFERENCE))
        case {"enum": choices}:
            return st.sampled_from(choices)
        case {"oneOf": several} | {"anyOf": several}:
            return st.one_of(*map(of_schema, several))
        case {"allOf": several}:
            return st.tuples(*map(of_schema, several)).map(lambda parts: dict(ChainMap(*parts)))
        case {"type": [*kinds]}:
            return st.one_of(*(of_schema({**schema, "type": kind}) for kind in kinds))
        case {"format": "date-time", "type": "string"}:
            return st.integers(1, 4_102_444_800).map(lambda seconds: encode_time(1000 * seconds))
        case {"format": "uuid"}:
            return st.uuids().map(str)
        case {"pattern": pattern, "type": "string"}:
            return st.from_regex(pattern, fullmatch=True)
        case {"contentEncoding": "base64"}:
            return st.binary(max_size=5).map(lambda octets: b64encode(octets).decode())
        case {"properties": {"binary": octets, "value": text}}:
            binary = {"type": st.just("Binary"), "binary": of_schema(octets)}
            return st.fixed_dictionaries(binary) | st.fixed_dictionaries(
                {"type": st.just("String"), "value": of_schema(text)}
            )
        case {"properties": fields}:
            return st.fixed_dictionaries({name: of_schema(kind) for name, kind in fields.items()})
        case {"type": "object"}:
            names, kind = schema.get("propertyNames"), schema.get("additionalProperties")
            return st.dictionaries(
                of_schema({"type": "string", **names}) if names else st.text(min_size=1, max_size=5),
                of_schema(kind) if isinstance(kind, dict) else ANYTHING,
                min_size=schema.get("minProperties", 0),
                max_size=2,
            )
        case {"type": "array", "items": kind}:
            return st.lists(of_schema(kind), min_size=schema.get("minItems", 0), max_size=2)
        case {"type": "string"}:
            most = min(9, schema.get("maxLength", 9))
            return st.text(min_size=schema.get("minLength", 0), max_size=most)
        case {"type": "integer"}:
            return st.integers(schema.get("minimum", 1), schema.get("maximum", 2**40))
        case {"type": "number"}:
            return st.floats(schema.get("minimum", 0.01), schema.get("maximum", 1e15))
        case {"type": "boolean"}:
            return st.booleans()
        case {"type": "null"}:
            return st.none()
    return ANYTHING


def reread(shape: Shape[Any], body: Json) -> Json:
    value = shape.decode(checked(shape, json.dumps(body)), **FROM_THE_PATH.get(shape.component, {}))
    return shape.encode(value)


def is_kept(shape: Shape[Any], name: str, value: Any, written: Any) -> bool:
    """Whether a field is written as it was read, unless it is empty or follows from others."""
    if not value or name in WITH_OTHERS or any(is_computed(of, name) for of in shape.stands_for):
        return True
    if isinstance(value, dict | list):
        return bool(written) or not any(value.values() if isinstance(value, dict) else value)
    kind = shape.fields[name]
    return bool(written == value or kind.decode(value) == kind.omit)


def is_computed(of: type[Any], name: str) -> bool:
    return isinstance(getattr(of, name, None), property)


@pytest.mark.parametrize("shape", list(SHAPES.values()), ids=lambda shape: shape.component)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_is_read_is_written_the_same(shape, data):
    body = data.draw(of_component(shape.component))

    written = reread(shape, body)

    assert reread(shape, written) == written
    for name in shape.fields:
        assert is_kept(shape, name, body.get(name), written.get(name)), name
