"""A proxy that injects the faults of networks into HTTP requests, each into a share of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Event, Lock, Thread
from typing import Any

FAULTS = ("cut", "delay", "drop the answer", "duplicate", "reorder", "restart")
DELAY, HOLD, OUTAGE = 0.2, 0.1, 0.05  # seconds


class FaultProxy:
    """A proxy between a client and a server on this machine.

    - cut: the request never arrives.
    - delay: it arrives late.
    - drop the answer: it takes effect, but the caller gets no answer.
    - duplicate: it takes effect twice.
    - reorder: the next request overtakes it.
    - restart: the proxy drops all connections for a moment.

    Args:
        port: port of the server.
        share: share of requests for each fault, from 0 to 1.
        seed: decides which requests get which fault.

    Attributes:
        happened: fault → how often it was injected.
    """

    def __init__(self, port: int, *, share: float, seed: int) -> None:
        self.happened: Counter[str] = Counter()
        self._target = port
        self._share = share
        self._rng = Random(seed)
        self._lock = Lock()
        self._passing = Event()
        self._down_until = 0.0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @contextmanager
    def running(self) -> Iterator[FaultProxy]:
        thread = Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    def _fate(self) -> str | None:
        with self._lock:
            weights = [*([self._share] * len(FAULTS)), 1 - self._share * len(FAULTS)]
            fate = self._rng.choices((*FAULTS, None), weights)[0]
            if fate:
                self.happened[fate] += 1
            if fate == "restart":
                self._down_until = time.monotonic() + OUTAGE
            return "cut" if time.monotonic() < self._down_until else fate

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Any:
        """The server's answer after the fault; None if the caller gets no answer."""
        fate = self._fate()
        if fate == "cut":
            return None
        if fate == "delay":
            time.sleep(DELAY)
        if fate == "reorder":
            self._passing.clear()
            self._passing.wait(HOLD)
        if fate == "duplicate":
            self._forward(method, path, headers, body)
        answer = self._forward(method, path, headers, body)
        self._passing.set()
        return None if fate in ("drop the answer", "restart") else answer

    def _forward(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self._target, timeout=35)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                with suppress(OSError):
                    super().handle_one_request()

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with suppress(OSError, HTTPException):
                    answered = proxy._answer(self.command, self.path, dict(self.headers.items()), body)
                    if answered is not None:
                        self._reply(*answered)
                        return
                self.close_connection = True

            def _reply(self, response: HTTPResponse, body: bytes) -> None:
                self.send_response_only(response.status, response.reason)
                for name, value in response.getheaders():
                    if name.lower() not in {"transfer-encoding", "content-length", "connection"}:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_args: Any) -> None:
                pass

        return Handler
