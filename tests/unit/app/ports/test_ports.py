"""One port, two implementations: on AWS and in memory, each call has the signature of its Protocol."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ports import Defaults, Ports
from fanin.domain.tree import Tree
from fanin.entry.settings import Settings
from fanin.entry.wiring import connect
from tests.unit.app.conftest import parameters

TABLES = {
    names.ENV_BATCHES_TABLE: "batches",
    names.ENV_WORDS_TABLE: "words",
    names.ENV_PARTS_TABLE: "parts",
    names.ENV_DIRECTORY_TABLE: "directory",
}
ON: dict[str, Callable[[], Ports]] = {
    "AWS": lambda: connect(Settings(TABLES)),
    "memory": lambda: Memory().ports(),
}


def calls() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Each port, and each call of its Protocol."""
    for port, protocol in get_type_hints(Ports).items():
        if protocol not in {Defaults, Tree}:
            for name, call in vars(protocol).items():
                if inspect.isfunction(call) and not name.startswith("_"):
                    yield port, name, call


CALLS = [pytest.param(port, name, call, id=f"{port}.{name}") for port, name, call in calls()]


def test_there_are_calls() -> None:
    assert len(CALLS) > 40


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize(("port", "name", "call"), CALLS)
def test_an_implementation_has_the_signature_of_its_protocol(
    on: str, port: str, name: str, call: Callable[..., Any]
) -> None:
    implementation = getattr(getattr(ON[on](), port), name)

    assert parameters(implementation) == parameters(call)


def test_what_callers_do_not_say_is_what_the_guarantees_promise() -> None:
    """An open batch may be idle for two hours, a closed one for a week; a batch lives for thirty days."""
    hour, day = 3_600, 24 * 3_600

    assert Defaults() == Defaults(
        open_idle_ttl=2 * hour, closed_idle_ttl=7 * day, lifetime=30 * day, reply_to=""
    )
