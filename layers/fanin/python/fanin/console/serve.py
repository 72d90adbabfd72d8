"""Serves a console on this machine, to the browser that opens its launch link."""

import errno
import getpass
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn

from fanin.app.api import Fanin
from fanin.console.application import console
from fanin.console.guard import LAUNCH
from fanin.console.options import Options
from fanin.errors import NotConfigured

__all__ = ["serve"]

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 8642
"""The port that is tried first if none is asked for; then come those after it."""
HTTP_PORT: Final = 80
_OF_LOOPBACK: Final = (LOOPBACK, "localhost", "::1")
_PORTS: Final = 20
_PORT_REFUSED: Final = {errno.EADDRINUSE, errno.EACCES}
"""Errors that another port does not have; with all others the address is wrong."""


def serve(
    fanin: Fanin,
    *,
    name: str,
    write: bool = False,
    host: str = LOOPBACK,
    port: int | None = None,
    browser: bool = True,
    report: Callable[[str], None],
) -> None:
    """Serve a console until the process is interrupted.

    Args:
        fanin: the eight services that it shows.
        name: of the stack, for people.
        write: whether it has buttons that change something.
        host: address to listen on. Only the loopback address cannot be reached from other machines.
        port: TCP port; None takes a free one.
        browser: open the launch link in a browser.
        report: prints a line for people.

    Raises:
        NotConfigured: the address cannot be listened on.
    """
    with _listening(host, port) as listener:
        at = listener.getsockname()[1]
        options = Options(
            name=name, write=write, caller=_user(), hosts=frozenset(_names(host, at)), cookie=f"fanin_ui_{at}"
        )
        app = console(fanin, options)
        address = f"http://{_in_address(host)}:{at}/"

        def link() -> str:
            return f"{address}?{LAUNCH}={app.state.console.sessions.launch()}"

        def started() -> None:
            opened = link()
            report(f"console of {name}{', with buttons' if write else ', read-only'}: {opened}")
            if host.lower() not in _OF_LOOPBACK:
                report("other machines can reach it, and its connections are not encrypted")
            report("Ctrl-C stops it; Enter prints another link, since each works once")
            if browser:
                webbrowser.open(opened)

        _on_enter(lambda: report(link()))
        server = _Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="off",  # there is none, and a second Ctrl-C would end it with a traceback
                timeout_graceful_shutdown=2,
            ),
            started,
        )
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that says when it answers requests."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._when_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._when_started()


def _listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens on the port, or on the first of some that is free."""
    ports = (port,) if port is not None else (*range(PORT, PORT + _PORTS), 0)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for one in ports:
        try:
            return socket.create_server((host, one), family=family)
        except OSError as error:
            refused, tried = error, one
            if error.errno != errno.EADDRINUSE:
                break
    option = "--port" if refused.errno in _PORT_REFUSED else "--host"
    raise NotConfigured(
        f"cannot listen on {host}, port {tried}: {refused.strerror}; choose another with {option}"
    ) from refused


def _user() -> str:
    """Who runs this process, for the action log; empty if the machine does not know."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number that has no name
        return ""


def _names(host: str, port: int) -> Iterator[str]:
    """The values of ``Host`` that browsers send which came by a name of this machine."""
    names = {host, *_OF_LOOPBACK}
    if host not in _OF_LOOPBACK:
        names |= {socket.gethostname(), socket.getfqdn()}
    for name in map(str.lower, names):
        yield f"{_in_address(name)}:{port}"
        if port == HTTP_PORT:
            yield _in_address(name)  # browsers leave it out


def _in_address(host: str) -> str:
    """A host as addresses have it: brackets around the colons of IPv6 (RFC 3986, section 3.2.2)."""
    return f"[{host}]" if ":" in host else host


def _on_enter(act: Callable[[], None]) -> None:
    """Act whenever somebody presses Enter in the terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return

    def follow() -> None:
        for _ in sys.stdin:
            act()

    threading.Thread(target=follow, daemon=True).start()
