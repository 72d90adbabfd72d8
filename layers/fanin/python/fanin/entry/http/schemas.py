"""The schemas of the OpenAPI document, with examples and the docstrings of the classes that they stand for.

Those of requests are strict, and those of answers may grow.
"""

import inspect
import json
import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, Final

from fanin.entry.http import descriptions
from fanin.entry.http.route import HttpRoute
from fanin.wire.json_types import Schema
from fanin.wire.problems import PROBLEM
from fanin.wire.shapes import REFERENCE, SHAPES, Shape

_BATCH: Final = 243988644675881
_GROUP: Final = "00000000-0000-8000-820a-7e5724b523c0"
_ITEM: Final = f"{_BATCH}:{_GROUP}:0"
_BEYOND: Final = f"{_BATCH}:{_GROUP}:2"
_QUEUE: Final = "https://sqs.eu-west-1.amazonaws.com/123456789012/rows"
_CARLYLE: Final = "00000000-0000-8000-8000-dde83cc8b529"
_MARKS: Final = [
    _ITEM,
    {"item": f"{_BATCH}:{_GROUP}:1", "totals": {"rows": 812}},
    {"failed": _BEYOND, "reason": "no price"},
]
_ITEMS: Final = {"first": 2, "failed": 0, "duplicates": [], "ranged": 0, "late": 0, "held": 0}
_RECEIPT: Final = {"batch_id": _BATCH, "user_key": "catalog-42", "state": "open", "complete": False, **_ITEMS}
_DETAIL: Final = f"item id '{_BEYOND}' is beyond its group"
_REFUSED: Final = {"place": 2, "code": "invalid-item-id", "detail": _DETAIL}

EXAMPLES: Final[dict[str, Any]] = {
    "ChangeLimits": {"deadline": "2026-11-21T20:00:00Z", "tolerated_failures": {"count": 100}},
    "OpenBatch": {"user_key": "catalog-42", "deadline": "2026-11-21T18:00:00Z", "totals": ["rows"]},
    "AddItems": {"count": 3},
    "AddKeys": {"keys": [{"key": "/a", "payload": "51f0c1d2"}, {"key": "/b"}]},
    "Group": {"batch_id": _BATCH, "id": _GROUP, "upto": 3, "again": False, "sent": False},
    "MarkItems": {"marks": _MARKS},
    "Marked": {"batches": [_RECEIPT], "refused": [_REFUSED], "left": [], "unknown": []},
    "Missing": {"ranges": [{"group": f"{_BATCH}:{_GROUP}", "from": 0, "to": 3}], "cursor": None},
    "Expired": {"batches": 2, "items": 4_000, "cursor": None},
    "Selection": {"errors": ["no price"], "ranges": [{"from": 0, "to": 1_000}]},
    "Redrive": {"errors": ["no price"], "dry_run": True},
    "SentItems": {"queue": _QUEUE, "from": 0, "to": 1_000},
    "NoteRetries": {"retries": [{"item": _ITEM, "attempt": 2, "error": "ConnectionError: no answer"}]},
    "DefineBuffer": {"limit": 500},
    "PutWork": {"payloads": ['{"scene": 12}']},
    "TakeWork": {"most": 10, "wait": 20},
    "DoneWork": {"receipts": [], "failures": []},
    "Register": {"channel": _QUEUE, "attributes": {"region": "eu"}, "lease": 300},
    "PutRoute": {"pattern": {"source": ["shop"], "detail-type": ["Order Placed"]}, "topic": "warehouses"},
    "PutEvent": {"source": "shop", "detail_type": "Order Placed", "detail": {"order": 7}},
    "EventSent": {"event_id": "11710aed-b79e-4468-a20b-bb3c0c3b4860", "correlation_id": "order-7"},
    "OpenFrame": {"size": 1_000, "source": "press", "destination": "archive", "ttl": 600},
    "ClaimEnvelopes": {"claims": [{"frame_id": _BATCH, "index": 0}], "lease": 30},
    "Scatter": {"body": "report!", "topic": "cars", "timeout": 60, "max_retries": 3},
    "ReplyList": {"replies": [{"item": _ITEM, "payload": {"km": 412}}]},
    "ClaimCheckRequest": {"item": _ITEM, "size": 5_000_000, "content_type": "application/json"},
    "CarlyleCreate": {"userKey": "catalog-42"},
    "CarlyleItems": {"batchId": _BATCH, "items": 3},
    "CarlyleAcks": {"batchItemIds": [_ITEM]},
    "CarlyleDecrements": {"acks": [{"batchId": _CARLYLE, "by": 2}]},
    "Problem": {
        "type": "urn:fanin:problem:batch-closed",
        "title": "Conflict",
        "status": 409,
        "detail": "batch 243988644675881 is closed: it takes no more items; open another",
        "request_id": "6cd7cf34-ea8f-47e9-b196-e819c2e6a576",
    },
}
"""Component → a value of it; each component that a request has as its body is here."""


_SECTION: Final = re.compile(r"^Attributes:\n(.*?)(?=^\w+:\n|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_MILLISECONDS: Final = re.compile(r",? (?:in )?(?:ms|milliseconds) since the epoch|, (?:in )?ms\b")
"""How a docstring says that Python has a point in time as a number; JSON has it as text."""


def described(classes: Iterable[type[Any]]) -> dict[str, str]:
    """What the docstrings of classes say about their attributes; the first that names one decides."""
    found: dict[str, str] = {}
    for one in classes:
        section = _SECTION.search(inspect.getdoc(one) or "")
        for name, text in _ENTRY.findall(section[1] if section else ""):
            found.setdefault(name, _for_json(text))
    return found


def summary(of: object) -> str:
    """The first paragraph of a docstring, for readers of JSON; empty if there is none."""
    return _for_json((inspect.getdoc(of) or "").partition("\n\n")[0])


def explained(of: object) -> str:
    """A docstring up to its first section, for readers of JSON."""
    return _for_json(re.split(r"^\w+:\n", inspect.getdoc(of) or "", maxsplit=1, flags=re.MULTILINE)[0])


def _for_json(text: str) -> str:
    text = " ".join(text.split())
    text = _MILLISECONDS.sub("", text).replace("``", "`")
    text = re.sub(r"\bNone\b", "null", text)
    text = re.sub(r"\bTrue\b", "true", re.sub(r"\bFalse\b", "false", text))
    return text[:1].upper() + text[1:]


_ANSWERED: Final = "Answered"
"""Ends the name of a component in answers whose name is taken by the one in requests."""


class Schemas:
    """The components of a route table, and references to them.

    A request with a field that is not known is refused, and an answer may get fields that its reader does not
    know yet. So an object that is part of both has two schemas.

    Args:
        routes: the table.
    """

    def __init__(self, routes: Sequence[HttpRoute]) -> None:
        bodies = [route.body for route in routes if route.body]
        answers = [PROBLEM, *(route.answer for route in routes if route.answer)]
        self._asked = _reached(bodies)
        self._answered = _reached(answers)
        self._schemas = {name: _with_words(SHAPES[name]) for name in self._asked | self._answered}

    def components(self) -> dict[str, Schema]:
        """The definition of each component by its name in the document."""
        asked = {name: self._schemas[name] for name in self._asked}
        answered = {
            self._name_in_answers(name): self._as_answered(self._schemas[name]) for name in self._answered
        }
        return dict(sorted((asked | answered).items()))

    def of_answer(self, shape: Shape[Any]) -> Schema:
        """The schema of an answer's body."""
        found: Schema = self._as_answered(shape.schema)
        return found

    def _name_in_answers(self, name: str) -> str:
        return name + _ANSWERED if name in self._asked else name

    def _as_answered(self, schema: Any) -> Any:
        """A schema that refers to those of answers, and does not exclude further fields."""
        if isinstance(schema, list):
            return [self._as_answered(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        found = {name: self._as_answered(value) for name, value in schema.items()}
        if found.get("additionalProperties") is False:
            del found["additionalProperties"]
        if isinstance(reference := found.get("$ref"), str):
            found["$ref"] = REFERENCE + self._name_in_answers(reference.removeprefix(REFERENCE))
        return found


def _with_words(shape: Shape[Any]) -> Schema:
    """The definition of a shape with descriptions of the object and its fields, and an example."""
    # Fields of one kind share one schema, so each gets a copy of its own before it gets words of its own
    fields = {name: deepcopy(schema) for name, schema in shape.definition["properties"].items()}
    definition = {**deepcopy(shape.definition), "properties": fields}
    words = described(shape.stands_for)
    for name, schema in fields.items():
        owners = (shape.component, *(one.__name__ for one in shape.stands_for))
        own = [descriptions.FIELDS.get(f"{owner}.{name}") for owner in owners]
        texts = (*own, schema.get("description"), words.get(name), descriptions.FIELDS.get(name))
        if text := next(filter(None, texts), None):
            schema["description"] = text[:1].upper() + text[1:]
    if shape.stands_for:
        definition["description"] = summary(shape.stands_for[0])
    if shape.component in EXAMPLES:
        definition["examples"] = [EXAMPLES[shape.component]]
    return definition


def _reached(shapes: Iterable[Shape[Any]]) -> set[str]:
    """Names of the components that shapes refer to, themselves included."""
    found: set[str] = set()
    waiting = [shape.component for shape in shapes]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += re.findall(f'"{REFERENCE}(\\w+)"', json.dumps(SHAPES[name].definition))
    return found
