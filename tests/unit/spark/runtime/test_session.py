"""Where Spark finds its Java, which sessions are refused, and how many tasks read what."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.runtime import session
from fanin.spark.runtime.session import UNBOUNDED, classic, most_tasks, one_task_for_each_file


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A machine without Java, and a virtual environment that ``make`` put one into."""
    java = tmp_path / "venv" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(os, "environ", {"PATH": str(tmp_path)})
    return tmp_path


def test_without_any_other_it_is_that_of_the_virtual_environment(environment):
    session._find_java()
    assert os.environ["JAVA_HOME"] == str(environment / "venv")


def test_a_java_on_the_path_goes_first(environment):
    java = environment / "java"
    java.touch()
    java.chmod(0o755)
    session._find_java()
    assert "JAVA_HOME" not in os.environ


def test_what_the_user_says_stays(environment):
    os.environ["JAVA_HOME"] = "/opt/java"
    session._find_java()
    assert os.environ["JAVA_HOME"] == "/opt/java"


def test_without_one_there_either_spark_says_so_itself(environment):
    (environment / "venv" / "bin" / "java").unlink()
    session._find_java()
    assert "JAVA_HOME" not in os.environ


def test_a_session_of_connect_is_refused():
    session: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(
        InvalidRequest, match=r"acknowledge was called with a session of Spark Connect.*spark-submit"
    ):
        classic(session, "acknowledge")


def test_any_other_passes():
    session: Any = object()
    assert classic(session, "acknowledge") is session


DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}


@pytest.mark.parametrize(
    ("conf", "now", "most"),
    [
        ({}, 2, 2),
        ({"spark.dynamicAllocation.enabled": "false", "spark.dynamicAllocation.maxExecutors": "9"}, 8, 8),
        (DYNAMIC, 2, UNBOUNDED),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "infinity"}, 2, UNBOUNDED),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "8", "spark.executor.cores": "4"}, 2, 32),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "8", "spark.executor.cores": "4"}, 100, 100),
        (
            {
                **DYNAMIC,
                "spark.dynamicAllocation.maxExecutors": "8",
                "spark.executor.cores": "4",
                "spark.task.cpus": "2",
            },
            2,
            16,
        ),
    ],
)
def test_a_cluster_counts_as_it_may_grow(conf, now, most):
    context = SimpleNamespace(defaultParallelism=now, getConf=lambda: conf)
    assert most_tasks(SimpleNamespace(sparkContext=context)) == most


def test_files_are_joined_again_afterwards_whatever_happens():
    # Given the settings of a session
    settings = {"spark.sql.files.openCostInBytes": "4MB", "spark.sql.files.maxPartitionBytes": "128MB"}
    conf = SimpleNamespace(get=settings.__getitem__, set=settings.__setitem__)

    # When tasks are planned, and fail
    def plan() -> None:
        with one_task_for_each_file(SimpleNamespace(conf=conf)):
            planned.append(settings["spark.sql.files.openCostInBytes"])
            raise ConnectionError("the executors are gone")

    planned: list[str] = []
    with pytest.raises(ConnectionError):
        plan()
    assert planned == ["128MB"]
    # Then the setting is as before
    assert settings["spark.sql.files.openCostInBytes"] == "4MB"


def test_files_are_joined_again_when_the_last_of_several_threads_is_done():
    # Given two threads of a session that plan at the same time
    settings = {"spark.sql.files.openCostInBytes": "4MB", "spark.sql.files.maxPartitionBytes": "128MB"}
    spark = SimpleNamespace(conf=SimpleNamespace(get=settings.__getitem__, set=settings.__setitem__))
    first, second = (one_task_for_each_file(spark) for _ in range(2))
    first.__enter__()
    second.__enter__()
    # When they end one after the other, then the setting stays until both have
    first.__exit__(None, None, None)
    assert settings["spark.sql.files.openCostInBytes"] == "128MB"
    second.__exit__(None, None, None)
    assert settings["spark.sql.files.openCostInBytes"] == "4MB"
