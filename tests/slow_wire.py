"""A TCP proxy that forwards requests but keeps answers: a write happens, and its writer does not know."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class SlowWire:
    """A TCP proxy to a service of AWS, on a port of its own.

    Attributes:
        url: URL of the proxy.
        kept: number of answers kept so far.
    """

    def __init__(self, to: str) -> None:
        target = urlsplit(to)
        self._to = target.hostname, target.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._next = b""
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.kept = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def keep_next(self, operation: str) -> None:
        """Keep the answer to the next call of an operation, such as ``UpdateItem``."""
        self._next = f".{operation}\r\n".encode()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                keep = threading.Event()
                threading.Thread(target=self._ask, args=(near, far, keep), daemon=True).start()
                threading.Thread(target=self._answer, args=(far, near, keep), daemon=True).start()

    def _ask(self, near: socket.socket, far: socket.socket, keep: threading.Event) -> None:
        with suppress(OSError), near, far:  # either end may be killed
            while data := near.recv(1 << 20):
                if self._next and self._next in data:
                    self._next = b""
                    keep.set()
                far.sendall(data)

    def _answer(self, far: socket.socket, near: socket.socket, keep: threading.Event) -> None:
        with suppress(OSError):
            while data := far.recv(1 << 20):
                if keep.is_set():
                    self.kept += 1
                    return
                near.sendall(data)


@contextmanager
def slow_wire(to: str) -> Iterator[SlowWire]:
    """Run a proxy inside a ``with`` block."""
    wire = SlowWire(to)
    try:
        yield wire
    finally:
        wire.close()
