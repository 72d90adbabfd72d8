"""What a stream's handler asks for each micro-batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import StorageLevel

from fanin.errors import InvalidRequest
from fanin.spark.ack import stream
from fanin.spark.ack.ledger_writes import Acknowledged

DONE = Acknowledged(rows=3, distinct=3, failed=0)


class Rows:
    """A micro-batch that knows whether Spark keeps it."""

    sparkSession = None  # noqa: N815  as Spark calls it

    def __init__(self, *, kept: bool = False, partitions: int = 2) -> None:
        self.kept = kept
        self.read = False
        self.partitions = partitions

    @property
    def rdd(self) -> Any:
        return SimpleNamespace(getNumPartitions=lambda: self.partitions)

    def count(self) -> int:
        assert self.kept
        self.read = True
        return 3

    @property
    def storageLevel(self) -> StorageLevel:  # noqa: N802  as Spark calls it
        return StorageLevel.MEMORY_AND_DISK if self.kept else StorageLevel.NONE

    def persist(self) -> Rows:
        self.kept = True
        return self

    def unpersist(self) -> None:
        self.kept = False


def folder(_spark: object, path: str) -> Any:
    """A folder that is not there."""
    return SimpleNamespace(path=path, at=lambda name: f"{path}/{name}", delete=lambda _name: None)


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every micro-batch is large."""
    monkeypatch.setattr(stream, "Folder", folder)
    monkeypatch.setattr(stream, "acknowledge_few", lambda *_, **__: None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []

    def acknowledge(given: Any) -> Acknowledged:
        assert given.rows.kept
        calls.append(given)
        return DONE

    monkeypatch.setattr(stream, "acknowledge_many", acknowledge)
    return calls


def test_a_micro_batch_that_fails_is_not_kept_in_memory(monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(stream, "acknowledge_many", broken)
    rows, heard = Rows(), []
    with pytest.raises(RuntimeError):
        stream.ack_stream(object(), work="/scratch", on_done=lambda *done: heard.append(done))(rows, 5)
    assert (rows.kept, heard) == (False, [])


@pytest.mark.parametrize(
    "wrong", [{"work": None}, {"rejects": 5}, {"batch_id": "abc"}, {"batch_id": 1 << 53}]
)
def test_wrong_arguments_are_refused_before_the_stream_begins(wrong):
    with pytest.raises(InvalidRequest, match=f"{next(iter(wrong))} must be a"):
        stream.ack_stream(object(), **{"work": "/scratch", **wrong})


@pytest.mark.parametrize("kept", [True, False])
def test_rows_that_the_caller_keeps_stay_kept(asked, kept):
    rows = Rows(kept=kept)
    stream.ack_stream(object(), work="/scratch")(rows, 5)
    assert (len(asked), rows.kept) == (1, kept)
