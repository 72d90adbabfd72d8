"""What a stream's handler asks for each micro-batch."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.spark.ack import stream
from fanin.spark.ack.driver import Acknowledged
from fanin.spark.ack.strategy import Strategy

DONE = Acknowledged(Strategy.PAGES, rows=3, distinct=3, failed=0)


class Rows:
    """A micro-batch that knows whether Spark keeps it."""

    def __init__(self) -> None:
        self.kept = False

    def persist(self) -> Rows:
        self.kept = True
        return self

    def unpersist(self) -> None:
        self.kept = False


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []

    def acknowledge(rows: Rows, service: object, **options: Any) -> Acknowledged:
        assert rows.kept
        calls.append(options)
        return DONE

    monkeypatch.setattr(stream, "acknowledge", acknowledge)
    return calls


def test_each_micro_batch_has_folders_of_its_own(asked):
    handle = stream.ack_stream(object(), work="/scratch", rejects="/rejects", batch_id=7, totals=["rows"])
    handle(Rows(), 12)
    assert asked == [
        {
            "work": "/scratch/epoch=12",
            "rejects": "/rejects/epoch=12",
            "batch_id": 7,
            "strategy": Strategy.PAGES,
            "totals": ["rows"],
        }
    ]


def test_rejects_stay_in_the_work_folder_unless_another_is_named(asked):
    stream.ack_stream(object(), work="/scratch")(Rows(), 0)
    assert asked[0]["rejects"] is None


def test_the_caller_hears_what_each_micro_batch_did(asked):
    heard = []
    handle = stream.ack_stream(
        object(), work="/scratch", on_done=lambda epoch, done: heard.append((epoch, done))
    )
    handle(Rows(), 5)
    assert heard == [(5, DONE)]


def test_a_micro_batch_that_fails_is_not_kept_in_memory(monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(stream, "acknowledge", broken)
    rows, heard = Rows(), []
    with pytest.raises(RuntimeError):
        stream.ack_stream(object(), work="/scratch", on_done=lambda *done: heard.append(done))(rows, 5)
    assert (rows.kept, heard) == (False, [])
