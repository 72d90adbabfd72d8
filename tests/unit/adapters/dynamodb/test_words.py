"""What DynamoDB is asked to clear, to lease and to read, and what its answers mean."""

import pytest

from fanin.adapters.dynamodb import Connection, DynamoWords
from fanin.app.ports.words import Clear, WordKey
from fanin.errors import ServiceUnavailable
from tests.unit.adapters.dynamodb.conftest import Silent


def test_clearing_bits_is_sent_again_since_a_repeat_does_no_harm(silent: Silent) -> None:
    words = DynamoWords("words", Connection())

    with pytest.raises(ServiceUnavailable):
        words.clear([Clear(WordKey(7, 0, 0), 1, 2_000_000_000)])

    assert len(silent.calls) > 1
