"""Loads handlers, and reads what they send and measure."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fanin import names
from fanin.entry import wiring
from fanin.entry.http import application
from fanin.entry.observe import counted
from fanin.entry.observe import metrics as metrics_of_process
from tests.unit.entry.conftest import CONTEXT

FUNCTIONS = Path(__file__).parents[3] / "functions"


class Queue:
    """A queue that records what is sent to it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, messages) -> None:
        self.sent += messages


@pytest.fixture(autouse=True)
def _no_metrics_of_other_tests() -> None:
    metrics_of_process.clear_metrics()
    counted.clear()


@pytest.fixture
def retries(monkeypatch) -> Queue:
    queue = Queue()
    monkeypatch.setattr(wiring, "retry_queue", lambda: queue)
    return queue


@pytest.fixture
def set_aside(monkeypatch) -> list[Any]:
    """The messages that functions moved as they are to the queue for what could not be handled."""
    moved: list[Any] = []
    monkeypatch.setattr(wiring, "set_aside", moved.append)
    return moved


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"functions_{name}", FUNCTIONS / name / "handler.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def posted(path: str, body: object, **headers: str) -> Any:
    """The answer of the API's function to a POST."""
    application._application.cache_clear()
    event = {
        "rawPath": path,
        "headers": headers,
        "requestContext": {"http": {"method": "POST", "path": path}, "requestId": "r", "stage": "$default"},
        "body": json.dumps(body),
    }
    answer = load("api").handler(event, CONTEXT)
    application._application.cache_clear()
    return answer


def metrics(capsys) -> dict[str, list[float]]:
    """Name → values of the metrics that an invocation wrote."""
    written: dict[str, list[float]] = {}
    for line in capsys.readouterr().out.splitlines():
        entry = json.loads(line)
        for group in entry.get("_aws", {}).get("CloudWatchMetrics", []):
            assert group["Namespace"] == names.METRICS_NAMESPACE
            written |= {metric["Name"]: entry[metric["Name"]] for metric in group["Metrics"]}
    return written
