"""Serves an application on a loopback port, in a thread of this process."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

START_SECONDS: Final = 60.0


@contextmanager
def served(application: Callable[[str], ASGIApp]) -> Iterator[str]:
    """Run an application on a free port until the block ends.

    Args:
        application: makes it. It gets the URL, since some answer only requests to their own host.

    Yields:
        The URL, without a slash at the end.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(
            uvicorn.Config(
                application(url), log_level="warning", access_log=False, timeout_graceful_shutdown=1
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            _wait(server, thread)
            yield url
        finally:
            server.should_exit = True
            thread.join(START_SECONDS)


def _wait(server: uvicorn.Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the application did not start")
        time.sleep(0.005)
