"""Partial batch responses."""

from __future__ import annotations

from fanin.entry.partial_batch import partial_batch_response


def test_it_names_each_message_to_deliver_again() -> None:
    assert partial_batch_response(name for name in ("m2", "m1")) == {
        "batchItemFailures": [{"itemIdentifier": "m2"}, {"itemIdentifier": "m1"}]
    }


def test_without_messages_the_response_says_that_all_succeeded() -> None:
    # Given that Lambda takes an answer without the key as success too, but one with an empty id as failure
    assert partial_batch_response([]) == {"batchItemFailures": []}
