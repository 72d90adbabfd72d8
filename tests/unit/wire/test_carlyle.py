"""The original Carlyle's shapes: lenient about what they do not know, exact about what they do."""

from __future__ import annotations

import json

import pytest

from fanin.entry.http.validation import checked
from fanin.errors import InvalidRequest
from fanin.wire.carlyle import ACKS, CREATE, DECREMENT, DECREMENTS, ITEMS
from fanin.wire.shapes import SHAPES

OF_CARLYLE = {shape for name, shape in SHAPES.items() if name.startswith("Carlyle")}


@pytest.mark.parametrize("batch_id", [0, 5, "5", 2**53 - 1, str(2**53 - 1)])
def test_a_batch_id_is_a_number_or_its_digits(batch_id: int | str) -> None:
    body = {"batchId": batch_id, "items": 1}
    assert checked(ITEMS, json.dumps(body)) == body


@pytest.mark.parametrize("batch_id", [-1, 2**53, "x", "", "-1", "1" * 17, None, 1.5])
def test_another_batch_id_is_refused(batch_id: object) -> None:
    with pytest.raises(InvalidRequest, match=r"/batchId must be a whole number from 0 to .* or text"):
        checked(ITEMS, json.dumps({"batchId": batch_id, "items": 1}))


def test_unknown_fields_are_ignored_in_requests_and_never_in_answers() -> None:
    assert checked(CREATE, '{"userKey": "k", "hint": 1}') == {"userKey": "k", "hint": 1}
    lenient = {shape for shape in OF_CARLYLE if shape.definition["additionalProperties"]}
    assert len(OF_CARLYLE) > 10
    assert lenient == {CREATE, ITEMS, ACKS, DECREMENT, DECREMENTS}
