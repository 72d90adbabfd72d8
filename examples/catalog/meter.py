"""Counts the rows that fanin's functions write to DynamoDB, as DynamoDB bills them: refused ones, too."""

import json
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Self
from urllib.parse import urlsplit

HOP_BY_HOP = ("connection", "transfer-encoding", "content-length", "date", "server")


class Meter:
    """A proxy between functions and DynamoDB in the emulator; it runs inside a ``with`` block.

    Args:
        endpoint_url: URL of the emulator.

    Attributes:
        url: URL of the proxy; pass it to the functions as ``AWS_ENDPOINT_URL_DYNAMODB``.
        writes: table → number of rows written. Writes whose condition failed count, since DynamoDB bills
            them.
    """

    def __init__(self, endpoint_url: str) -> None:
        self._upstream = urlsplit(endpoint_url).netloc
        self._lock = Lock()
        self.writes: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _proxy(self._upstream, self._count))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _count(self, target: str, body: bytes) -> None:
        tables = list(rows_written(target.rpartition(".")[2], json.loads(body)))
        with self._lock:
            self.writes.update(tables)


def rows_written(operation: str, request: dict[str, Any]) -> Iterator[str]:
    """The name of the table for each row that a request to DynamoDB writes."""
    match operation:
        case "UpdateItem" | "PutItem" | "DeleteItem":
            yield request["TableName"]
        case "BatchWriteItem":
            for table, writes in request["RequestItems"].items():
                yield from [table] * len(writes)
        case "TransactWriteItems":
            for write in request["TransactItems"]:
                yield from (action["TableName"] for action in write.values())


def _proxy(upstream: str, count: Any) -> type[BaseHTTPRequestHandler]:
    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # headers and body in one packet

        def setup(self) -> None:
            super().setup()
            self.emulator = HTTPConnection(upstream)

        def finish(self) -> None:
            self.emulator.close()
            super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            count(self.headers["X-Amz-Target"], body)
            try:
                self._forward(body)
            except (OSError, HTTPException):
                self.close_connection = True  # client or emulator has hung up; the client handles the error

        def _forward(self, body: bytes) -> None:
            self.emulator.request("POST", self.path, body, dict(self.headers))
            answer = self.emulator.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Log nothing: standard error belongs to the progress bar."""

    return Proxy
