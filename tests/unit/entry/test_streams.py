"""Stream records, and what becomes of those that cannot be handled."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from fanin.adapters.dynamodb import rows
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.words import WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.entry import streams


def image(batch: Batch) -> dict[str, Any]:
    """The row as Lambda shows it: binary values in base64."""
    row = rows.encode(batch)
    return row | {"salt": {"B": base64.b64encode(row["salt"]["B"]).decode()}}


def record(new: dict[str, Any] | None, old: dict[str, Any] | None = None, name: str = "e1") -> dict[str, Any]:
    images = {"NewImage": new, "OldImage": old}
    return {
        "eventID": name,
        "eventSource": "aws:dynamodb",
        "dynamodb": {key: value for key, value in images.items() if value is not None},
    }


def message(body: str, name: str = "m1") -> dict[str, Any]:
    return {"messageId": name, "eventSource": "aws:sqs", "body": body}


def word(key: str, value: str, name: str = "e1") -> dict[str, Any]:
    return record({"word_id": {"S": key}, "word": {"N": value}}, name=name)


@pytest.fixture
def batch(ledger: LedgerService) -> Batch:
    return ledger.open(OpenBatch(user_key="k", metadata={"a": "b"}))


def test_only_the_step_to_a_terminal_state_is_an_end(batch, ledger):
    def ended_by(*images: dict[str, Any] | None) -> Batch | None:
        return ledger.follow(*streams.changed_batch(record(*images)))

    ended = replace(batch, state=State.COMPLETE, ended_at=5)
    assert ended_by(image(ended), image(batch)) == ended
    assert ended_by(image(ended)) == ended
    assert ended_by(image(batch)) is None
    assert ended_by(image(replace(ended, expires_at=9)), image(ended)) is None
    assert ended_by(None, image(ended)) is None
    # Whatever the row before says
    assert ended_by(image(ended), image(batch) | {"attention": {"S": "unheard of#1"}}) == ended


def test_only_a_word_of_zero_is_finished():
    assert streams.finished_word(word("7/2/31", "0")) == WordKey(7, 2, 31)
    assert streams.finished_word(word("7/2/31", "4")) is None
    assert streams.finished_word(record(None)) is None


def test_a_record_that_cannot_be_handled_is_parked_and_the_others_go_on():
    # Given three records, the second of which is poison
    seen: list[str] = []
    parked: list[Any] = []

    def act(records) -> None:
        for each in records:
            if each["eventID"] == "bad":
                raise KeyError("batch_id")
            seen.append(each["eventID"])

    event = {"Records": [record(None, name=name) for name in ("e1", "bad", "e3")]}

    answer = streams.consume(event, act, parked.append)
    # Then the stream goes on, and the poison waits in the retry queue
    assert answer == {"batchItemFailures": []}
    assert seen == ["e1", "e3"]
    assert [each["eventID"] for each in parked] == ["bad"]


@pytest.mark.parametrize("character", ["💥", "\0"])
def test_the_largest_record_of_a_batch_can_be_parked(batch, character):
    """SQS takes 256 KB, of JSON in which a character may become twelve bytes."""
    largest = replace(
        batch,
        user_key=character * limits.MAX_USER_KEY,
        parent_item="7" * 100,
        metadata={
            f"{n:02}" + character * (limits.MAX_METADATA_KEY - 2): character * limits.MAX_METADATA_VALUE
            for n in range(limits.MAX_METADATA)
        },
    )
    ended = replace(largest, state=State.COMPLETE)

    parked = json.dumps(record(image(ended), image(largest)))

    assert len(parked) < 200 * 1024


def test_records_tried_together_are_tried_alone_if_that_fails():
    calls: list[list[str]] = []
    parked: list[Any] = []

    def act(records) -> None:
        calls.append([each["eventID"] for each in records])
        if "bad" in calls[-1]:
            raise ValueError

    good = {"Records": [record(None, name=name) for name in ("e1", "e2")]}
    assert streams.consume(good, act, parked.append, together=True) == {"batchItemFailures": []}
    assert calls == [["e1", "e2"]]
    streams.consume(
        {"Records": [record(None, name=name) for name in ("e1", "bad")]}, act, parked.append, together=True
    )
    assert calls[1:] == [["e1", "bad"], ["e1"], ["bad"]]
    assert [each["eventID"] for each in parked] == ["bad"]


def test_a_record_that_cannot_even_be_parked_stops_the_stream():
    def act(_records) -> None:
        raise KeyError("batch_id")

    def park(_record) -> None:
        raise ConnectionError("no queue")

    with pytest.raises(ConnectionError):
        streams.consume({"Records": [record(None)]}, act, park)


def test_a_record_comes_back_from_the_retry_queue():
    # Given messages of the retry queue: a good record, a bad one, and one that is no record
    seen: list[Any] = []
    parked: list[Any] = []

    def act(records) -> None:
        (each,) = records
        seen.append(each["dynamodb"]["NewImage"]["word_id"]["S"])

    event = {
        "Records": [
            message(json.dumps(word("7/0/1", "0")), "m1"),
            message(json.dumps({"no": "record"}), "m2"),
            message("nonsense", "m3"),
        ]
    }

    answer = streams.consume(event, act, parked.append)
    # Then the bad ones are reported to the queue, which counts how often it has tried
    assert seen == ["7/0/1"]
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m2"}, {"itemIdentifier": "m3"}]}
    assert parked == []


def test_the_log_names_a_bad_record_and_keeps_its_content(caplog, batch):
    secret = image(batch)

    def act(_records) -> None:
        raise KeyError("state")

    streams.consume({"Records": [record(secret, name="event-9")]}, act, lambda _record: None)

    (logged,) = caplog.records
    assert logged.records == ["event-9"]
    assert secret["salt"]["B"] not in caplog.text


def test_a_removal_is_told_from_every_other_change(ledger, monkeypatch):
    forgotten: list[Batch] = []
    monkeypatch.setattr("fanin.app.ledger.service.forget", lambda _, batch: forgotten.append(batch))
    ended = Batch(7, b"s" * 16, 1, 1, 900, 60, 60, State.CANCELLED)
    live = replace(ended, state=State.OPEN)
    removed = replace(ended, expires_at=5)

    for old, new in ((ended, removed), (ended, ended), (live, ended), (removed, removed), (removed, None)):
        ledger.follow(old, new)
    assert forgotten == [removed]
