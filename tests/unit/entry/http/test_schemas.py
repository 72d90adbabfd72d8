"""The schemas of the document: strict for requests, open for answers, described, with examples that hold.

Descriptions for readers of JSON, taken from docstrings for readers of Python.
"""

import re
from collections.abc import Iterator
from typing import Any

import fastjsonschema
import pytest

from fanin.entry.http import descriptions
from fanin.entry.http.openapi import document
from fanin.entry.http.schemas import EXAMPLES, Schemas, described, summary
from fanin.entry.http.table import ROUTES
from fanin.wire.shapes import SHAPES

DOCUMENT = document(ROUTES)
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
COMPONENTS = {name: shape.definition for name, shape in SHAPES.items()}
OPERATIONS: list[dict[str, Any]] = [
    operation for path in DOCUMENT["paths"].values() for operation in path.values()
]


def reached(value: Any, found: set[str]) -> set[str]:
    """Names of components that a part of the document refers to."""
    for one in objects(value):
        name = str(one.get("$ref", "")).rpartition("/")[2]
        if name in SCHEMAS and name not in found:
            found.add(name)
            reached(SCHEMAS[name], found)
    return found


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from objects(one)


ASKED = reached([one.get("requestBody", {}) for one in OPERATIONS], set())
ANSWERED = reached([one["responses"] for one in OPERATIONS], set())
ANSWERED |= reached(DOCUMENT["components"]["responses"], set())


def test_a_component_is_of_requests_or_of_answers():
    assert set(SCHEMAS) == ASKED | ANSWERED
    assert set() == ASKED & ANSWERED


def test_answers_may_grow_and_requests_are_as_strict_as_their_check():
    assert [
        one for name in ANSWERED for one in objects(SCHEMAS[name]) if one.get("additionalProperties") is False
    ] == []
    for name in ASKED:
        assert SCHEMAS[name]["additionalProperties"] == COMPONENTS[name]["additionalProperties"]
    assert SCHEMAS["Tolerance"]["additionalProperties"] is False
    assert "additionalProperties" not in SCHEMAS["ToleranceAnswered"]


def test_the_check_of_requests_is_not_touched():
    before = repr(COMPONENTS)
    Schemas(ROUTES).components()
    assert repr(COMPONENTS) == before
    assert COMPONENTS["Batch"]["additionalProperties"] is False


def test_every_field_is_described():
    assert [
        (name, field)
        for name, component in SCHEMAS.items()
        for field, schema in component["properties"].items()
        if not schema.get("description")
    ] == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation["operationId"])
def test_every_operation_and_parameter_is_described(operation):
    assert operation["description"].endswith(".")
    assert set(operation["tags"]) <= set(descriptions.TAGS)
    for parameter in operation["parameters"]:
        assert parameter["description"] not in {"", parameter["name"]}


def test_nothing_is_described_that_is_not_there():
    fields = {field for schema in COMPONENTS.values() for field in schema["properties"]}
    places = {f"{name}.{field}" for name, schema in COMPONENTS.items() for field in schema["properties"]}
    assert set(descriptions.FIELDS) <= fields | places
    assert {operation["tags"][0] for operation in OPERATIONS} == set(descriptions.TAGS)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_a_value_of_its_component(name):
    schema = {**COMPONENTS[name], "components": {"schemas": COMPONENTS}}
    check = fastjsonschema.compile(schema, use_default=False)  # else it adds defaults to the example
    assert check(EXAMPLES[name]) == EXAMPLES[name]


def test_each_body_of_a_request_has_an_example():
    assert {route.body.component for route in ROUTES if route.body} <= set(EXAMPLES)


def test_no_component_has_a_field_of_its_own_name():
    """Generators of clients name variables after both, and then mix them up."""
    own = {name: re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in SCHEMAS}
    assert [name for name, snake in own.items() if snake in SCHEMAS[name]["properties"]] == []


def test_fields_of_one_kind_have_words_of_their_own():
    # Given fields that share one schema where they are declared
    shared = ("items", "failed", "acked", "targets")
    told = [SCHEMAS["Batch"]["properties"][name]["description"] for name in shared]
    # Then none has the words of another
    assert len(set(told)) == len(shared)
    assert told[0] == "How many items were added."


def test_what_a_batch_says_in_json_it_says_wherever_a_batch_is_shown():
    for name in ("expires_at", "touched_at", "held", "targets"):
        told = {
            SCHEMAS[shape]["properties"][name]["description"] for shape in ("Batch", "Progress", "Diagnosis")
        }
        assert len(told) == 1


class Parcel:
    """What is sent.

    It has more to say here.

    Attributes:
        sent_at: when it was sent, ms since the epoch; None while it waits, which may be
            a long time.
        ``quoted``: is no name.
        fragile: True if ``handle`` must be careful.

    Raises:
        Lost: it never arrives.
    """


class Letter:
    """A parcel, thinner.

    Attributes:
        fragile: always False.
        pages: how many
    """


def test_attributes_are_described_in_terms_of_json():
    assert described([Parcel]) == {
        "sent_at": "When it was sent; null while it waits, which may be a long time.",
        "fragile": "True if `handle` must be careful.",
    }


def test_the_first_class_that_names_an_attribute_decides():
    assert described([Letter, Parcel])["fragile"] == "Always false."
    assert set(described([Letter, Parcel])) == {"sent_at", "fragile", "pages"}
    assert described([int]) == {}


def test_the_summary_is_the_first_paragraph():
    assert summary(Parcel) == "What is sent."
    assert summary(type("Bare", (), {})) == ""
