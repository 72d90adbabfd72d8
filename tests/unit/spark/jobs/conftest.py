"""Jobs without a session of Spark."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fanin.spark.jobs import running


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    made: list[tuple[str, dict[str, str]]] = []

    @contextmanager
    def session(name: str, settings: dict[str, str]) -> Iterator[str]:
        made.append((name, settings))
        yield "a session"

    monkeypatch.setattr(running, "quiet_session", session)
    return made
