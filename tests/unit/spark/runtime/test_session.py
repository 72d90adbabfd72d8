"""Where Spark finds its Java."""

from __future__ import annotations

import os
import sys

import pytest

from fanin.spark.runtime import session


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
