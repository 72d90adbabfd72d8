"""The command line on the ledger in memory."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fanin import Tracker
from fanin.adapters.memory import Memory
from fanin.adapters.system import SystemClock
from fanin.app.services import Services
from fanin.cli.main import app
from fanin.cli.session import Session
from fanin.domain.ids import Group


@pytest.fixture(scope="session", autouse=True)
def _one_tree() -> Iterator[None]:
    """Typer makes its commands once, and not again for each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def tracker() -> Tracker:
    return Tracker(Services(Memory(clock=SystemClock()).ports()))


@pytest.fixture
def run(tracker: Tracker) -> Callable[..., Any]:
    """Runs a command line; ``run(...).document`` is its JSON answer."""

    def call(*args: object, stdin: str | bytes | None = None) -> Any:
        result = CliRunner().invoke(app, [str(arg) for arg in args], obj=Session(given=tracker), input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        result.document = json.loads(result.stdout) if "--json" in args and result.stdout else None
        return result

    return call


@pytest.fixture
def group(tracker: Tracker) -> Group:
    """Ten items of an open batch."""
    return tracker.add(tracker.open(user_key="k").batch_id, 10)
