"""Where Spark finds its Java, which sessions are refused, and how many tasks read what."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.runtime import session
from fanin.spark.runtime.session import UNBOUNDED, classic, holding, most_tasks, one_task_for_each_file


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


def running(settings: dict[str, str]) -> SimpleNamespace:
    """A session with settings that can be changed, and no others."""
    change = {"set": settings.__setitem__, "unset": settings.pop}
    conf = SimpleNamespace(get=settings.get, isModifiable=lambda name: name != "fixed", **change)
    return SimpleNamespace(conf=conf)


def test_files_are_joined_again_afterwards_whatever_happens():
    cost, settings = "spark.sql.files.openCostInBytes", {"spark.sql.files.maxPartitionBytes": "128MB"}
    with pytest.raises(ConnectionError), one_task_for_each_file(running(settings)):  # noqa: PT012
        assert settings[cost] == "128MB"
        raise ConnectionError("the executors are gone")
    assert cost not in settings


def test_settings_are_as_before_when_the_last_of_several_threads_is_done():
    # Given three threads that hold a setting of one session, and one that was not there
    settings = {"page": "10"}
    spark = running(settings)
    blocks = [holding(spark, {"page": page, "new": page, "fixed": page}) for page in ("10", "20", "10")]
    for block in blocks:
        block.__enter__()
    seen = [dict(settings)]
    # When they end one after the other, the first of all first
    for block in blocks:
        block.__exit__(None, None, None)
        seen.append(dict(settings))
    # Then those that still hold it have it, and afterwards it is as it was
    assert [one.get("new") for one in seen[:3]] == ["10", "10", "10"]
    assert seen[3] == {"page": "10"}
