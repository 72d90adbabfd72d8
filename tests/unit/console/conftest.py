"""A service in memory, and browsers that look at its console."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from fanin.console import Options, console
from fanin.testing import InMemoryService

Browse = Callable[..., TestClient]


@pytest.fixture
def service() -> InMemoryService:
    return InMemoryService()


@pytest.fixture
def browse(service: InMemoryService) -> Browse:
    """Makes a browser for a console with some options; without a session, unless they ask for one."""

    def make(**options: Any) -> TestClient:
        app = console(service.services, Options(**{"sessions": False, **options}), now=service.clock.now)
        return TestClient(app, base_url="http://127.0.0.1:8642", follow_redirects=False)

    return make
