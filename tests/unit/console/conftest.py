"""A service in memory, and browsers that look at its console."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from jinja2 import Environment, FileSystemBytecodeCache
from starlette.testclient import TestClient

from fanin.console import Options, console, rendering
from fanin.testing import InMemoryService

Browse = Callable[..., TestClient]


@pytest.fixture(scope="session", autouse=True)
def _one_loop() -> Iterator[None]:
    """Requests share an event loop and its threads; each would start some of its own."""
    with start_blocking_portal() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestClient, "portal", portal)
        yield


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Consoles share their compiled templates; to compile those of a page takes longer than most tests."""
    shared = FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "Environment", partial(Environment, bytecode_cache=shared))
        yield


@pytest.fixture
def browse(service: InMemoryService) -> Browse:
    """Makes a browser for a console with some options; without a session, unless they ask for one."""

    def make(**options: Any) -> TestClient:
        app = console(service.services, Options(**{"sessions": False, **options}), now=service.clock.now)
        return TestClient(app, base_url="http://127.0.0.1:8642", follow_redirects=False)

    return make
