"""A proxy between botocore and a store, which lets writes take effect and loses their answers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Final
from urllib.parse import urlsplit

WRITES: Final = frozenset({"BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"})


class LosingProxy:
    """Passes requests on, and cuts the connection before one chosen write is answered.

    Attributes:
        url: where it listens.
        seen: the operations that came, reads included, since the last ``lose``.
        lost: the write whose answer was lost; None if there was none yet.
    """

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.seen: list[str] = []
        self.lost: str | None = None
        self._left: int | None = None
        self._between: Callable[[], object] | None = None
        self._lock = Lock()

    def lose(self, number: int | None, between: Callable[[], object] | None = None) -> None:
        """Lose the answer to one of the writes from now on.

        Args:
            number: which of them, from 0; None loses none.
            between: called when that write has taken effect, before botocore can repeat it.
        """
        self.seen, self.lost, self._left, self._between = [], None, number, between

    def cuts(self, operation: str) -> bool:
        """Count an operation that has taken effect; whether its answer is the one to lose."""
        with self._lock:
            self.seen.append(operation)
            if operation not in WRITES or self._left is None:
                return False
            self._left -= 1
            if self._left != -1:
                return False
            self.lost, between = operation, self._between
        if between:
            between()
        return True

    def writes(self) -> int:
        """How many writes came since the last ``lose``."""
        return sum(operation in WRITES for operation in self.seen)


@contextmanager
def losing(target: str) -> Iterator[LosingProxy]:
    """Run a proxy in front of a store."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    proxy, where = LosingProxy(server), urlsplit(target).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            self.upstream = HTTPConnection(where)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.upstream.request("POST", self.path, body, dict(self.headers))
            answer = self.upstream.getresponse()
            text = answer.read()
            if proxy.cuts(self.headers["X-Amz-Target"].rpartition(".")[2]):
                self.close_connection = True
                return
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"connection", "content-length", "transfer-encoding"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def finish(self) -> None:
            self.upstream.close()
            super().finish()

    server.RequestHandlerClass = Handler
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
