"""A console on a port of this machine."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette

from fanin.app.api import Fanin
from fanin.console import Options, console
from fanin.console.guard import LAUNCH
from fanin.console.state import Console
from fanin.testing import InMemoryService
from tests.browser.serving import served


@dataclass(frozen=True)
class Served:
    """A console that answers requests.

    Attributes:
        url: without a slash at the end.
        console: what its pages share.
    """

    url: str
    console: Console

    def link(self, path: str = "/") -> str:
        """A launch link, which works once."""
        return f"{self.url}{path}?{LAUNCH}={self.console.sessions.launch()}"


def console_of(service: InMemoryService, **options: Any) -> AbstractContextManager[Served]:
    """Serve the console of a service in memory; its clock is the service's.

    Args:
        service: what it shows.
        options: of the console. Without ``sessions=True`` it answers any browser.
    """
    return console_over(service.services, service.clock.now, **options)


@contextmanager
def console_over(fanin: Fanin, now: Callable[[], int] | None = None, **options: Any) -> Iterator[Served]:
    """Serve a console as ``fanin ui`` does, but to any browser.

    Args:
        fanin: the services that it shows.
        now: tells the time, ms since the epoch; the machine's by default.
        options: of the console.
    """
    made: list[Starlette] = []

    def application(url: str) -> Starlette:
        port = urlsplit(url).port
        given = {
            "hosts": frozenset({f"127.0.0.1:{port}", f"localhost:{port}"}),
            "cookie": f"fanin_ui_{port}",
            "caller": "ada",
            "sessions": False,
        }
        made.append(console(fanin, Options(**{**given, **options}), now=now))
        return made[0]

    with served(application) as url:
        yield Served(url, made[0].state.console)
