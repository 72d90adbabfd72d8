"""The deployed service on an emulator, for the tests of this folder: one process runs them all."""

from collections.abc import Iterator

import pytest

from fanin.local import Stack, down, environment, up
from fanin.spark.service import Service


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The deployed service, with its functions."""
    root = tmp_path_factory.mktemp("stack")
    try:
        yield up(root, report=print)
    finally:
        down(root)


@pytest.fixture
def local_environment(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points this process at the stack; tasks are told by ``service``."""
    for name, value in environment(stack).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def service(local_environment: None) -> Service:
    """The stack, for driver and tasks."""
    return Service.from_env()
