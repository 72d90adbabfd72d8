"""Rejects that two runs of a fan-out write to one place; that both end well is tested on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from fanin.errors import ServiceUnavailable
from fanin.spark.fanout import summary
from fanin.spark.fanout.summary import WAITS, write_rejects
from fanin.spark.runtime import rejects


class Place:
    """The folder of rejects, to which another run writes as well.

    Attributes:
        there: what is there, reason → rows.
        meanwhile: for each time that rejects are written, what happens; afterwards all is well.
        waited: how often a run has waited.
    """

    def __init__(self, *meanwhile: Callable[[], object]) -> None:
        self.there: dict[str, int] = {}
        self.meanwhile = list(meanwhile)
        self.waited = 0

    def write(self, _left: object, _folder: str, counted: dict[str, int]) -> dict[str, int]:
        self.there = dict(counted)
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return counted

    def is_there(self, _spark: object, _folder: str, wanted: dict[str, int]) -> bool:
        return self.there == wanted

    def wait(self, seconds: float) -> None:
        assert 0 <= seconds <= max(WAITS)
        self.waited += 1

    def delete(self) -> None:
        self.there = {}

    def fail(self) -> None:
        raise AnalysisException("PATH_NOT_FOUND")


def written(place: Place, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    monkeypatch.setattr(rejects, "write_rejects", place.write)
    monkeypatch.setattr(summary, "_is_there", place.is_there)
    monkeypatch.setattr(rejects, "count_by_reason", lambda _: {"null": 3})
    left: Any = object()
    return write_rejects(None, left, "/rejects", wait=place.wait)  # type: ignore[arg-type]


def test_rejects_that_another_run_deleted_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place()
    place.meanwhile = [place.delete]
    assert written(place, monkeypatch) == place.there == {"null": 3}
    assert place.waited == 1


def test_rejects_that_another_run_has_written_instead_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a write that fails since another run has committed the same rejects
    place = Place()
    place.meanwhile = [place.fail]
    assert written(place, monkeypatch) == {"null": 3}
    assert place.waited == 0


def test_rejects_that_can_never_be_written_are_an_error_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place()

    def fail() -> None:
        place.delete()
        place.fail()

    place.meanwhile = [fail] * (len(WAITS) + 1)
    with pytest.raises(ServiceUnavailable, match=r"PATH_NOT_FOUND.* wait for its end") as refused:
        written(place, monkeypatch)
    assert "/rejects" in str(refused.value)
    assert place.waited == len(WAITS)


def test_rejects_whose_folder_cannot_be_used_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Place()

    def fail() -> None:
        place.delete()
        raise AnalysisException("Parent path is not a directory: file:/a.csv")

    place.meanwhile = [fail] * (len(WAITS) + 1)
    with pytest.raises(ServiceUnavailable, match=r"/rejects: file:/a\.csv is a file, .*another folder\. If"):
        written(place, monkeypatch)
