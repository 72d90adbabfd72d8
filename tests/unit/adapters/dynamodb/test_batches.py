"""What DynamoDB is asked for each move of a batch, and what its answers mean."""

import pytest

from fanin.adapters.dynamodb import Connection, DynamoBatches
from fanin.errors import ServiceUnavailable
from tests.unit.adapters.dynamodb.conftest import Silent


def test_an_addition_without_a_key_is_sent_once_and_says_so(silent: Silent) -> None:
    batches = DynamoBatches("batches", "parts", Connection())

    with pytest.raises(ServiceUnavailable, match="idempotency key"):
        batches.allocate(7, 10, activity=None, room=None)

    assert silent.calls == ["UpdateItem"]
