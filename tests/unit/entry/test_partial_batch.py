"""Partial batch responses.

Pauses between attempts, as those of a target.
"""

from __future__ import annotations

from dataclasses import replace

from fanin.domain.targets import PATIENCE_MS
from fanin.entry.partial_batch import LEAST, TARGETS, partial_batch_response, pause
from fanin.names import TARGET_TRIES


def test_it_names_each_message_to_deliver_again() -> None:
    assert partial_batch_response(name for name in ("m2", "m1")) == {
        "batchItemFailures": [{"itemIdentifier": "m2"}, {"itemIdentifier": "m1"}]
    }


def test_without_messages_the_response_says_that_all_succeeded() -> None:
    # Given that Lambda takes an answer without the key as success too, but one with an empty id as failure
    assert partial_batch_response([]) == {"batchItemFailures": []}


def received(times: int) -> dict[str, object]:
    return {"attributes": {"ApproximateReceiveCount": str(times)}}


def test_pauses_grow_to_an_hour() -> None:
    longest = replace(TARGETS, fraction=lambda: 1.0)
    pauses = [pause(received(times), longest) for times in (1, 2, 3, 9, 400)]
    assert pauses == [20, 40, 80, 3_600, 3_600]
    assert pause(received(1), replace(TARGETS, fraction=lambda: 0.0)) == LEAST


def test_a_day_has_fewer_tries_than_the_queue_allows() -> None:
    """With pauses of a fifth of the longest, which all together hardly ever are."""
    short = replace(TARGETS, fraction=lambda: 0.2)
    waited, tries = 0, 0
    while waited < PATIENCE_MS // 1000:
        tries += 1
        waited += pause(received(tries), short)
    assert tries < TARGET_TRIES / 3
