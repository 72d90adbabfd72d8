"""The setting for tasks that read a single file does not stay."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fanin.spark.runtime.session import one_task_for_each_file


def test_files_are_joined_again_afterwards_whatever_happens() -> None:
    # Given the settings of a session
    settings = {"spark.sql.files.openCostInBytes": "4MB", "spark.sql.files.maxPartitionBytes": "128MB"}
    conf = SimpleNamespace(get=settings.__getitem__, set=settings.__setitem__)

    # When tasks are planned, and fail
    def plan() -> None:
        with one_task_for_each_file(SimpleNamespace(conf=conf)):  # type: ignore[arg-type]
            planned.append(settings["spark.sql.files.openCostInBytes"])
            raise ConnectionError("the executors are gone")

    planned: list[str] = []
    with pytest.raises(ConnectionError):
        plan()
    assert planned == ["128MB"]

    # Then the setting is as before
    assert settings["spark.sql.files.openCostInBytes"] == "4MB"


def test_files_are_joined_again_when_the_last_of_several_threads_is_done() -> None:
    # Given two threads of a session that plan at the same time
    settings = {"spark.sql.files.openCostInBytes": "4MB", "spark.sql.files.maxPartitionBytes": "128MB"}
    spark = SimpleNamespace(conf=SimpleNamespace(get=settings.__getitem__, set=settings.__setitem__))
    first, second = (one_task_for_each_file(spark) for _ in range(2))  # type: ignore[arg-type]
    first.__enter__()
    second.__enter__()

    # When they end one after the other, then the setting stays until both have
    first.__exit__(None, None, None)
    assert settings["spark.sql.files.openCostInBytes"] == "128MB"
    second.__exit__(None, None, None)
    assert settings["spark.sql.files.openCostInBytes"] == "4MB"
