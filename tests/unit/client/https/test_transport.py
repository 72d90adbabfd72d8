"""The transport against a server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fanin.client.https.transport import Request, Urllib3Transport
from fanin.errors import ServiceUnavailable


class Server(BaseHTTPRequestHandler):
    seen: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, body))
        if self.path == "/cut":
            self.connection.close()
            return
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
        else:
            self.send_response(201)
            self.send_header("Retry-After", "3")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def root() -> Iterator[str]:
    Server.seen = []
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_answer_comes_back_with_its_status_headers_and_body(root):
    response = Urllib3Transport()(Request("POST", f"{root}/v1/x?a=b%2Fc", {"X-A": "1"}, b"{}"))
    assert (response.status, response.headers["retry-after"], response.body) == (201, "3", b"{}")
    assert Server.seen == [("/v1/x?a=b%2Fc", b"{}")]


def test_a_connection_cut_after_the_request_is_sent_once_and_told(root):
    with pytest.raises(ServiceUnavailable, match=r"no answer from 127\.0\.0\.1"):
        Urllib3Transport()(Request("POST", f"{root}/cut", {}, b"{}"))
    assert len(Server.seen) == 1


def test_a_redirect_is_not_followed_since_its_target_is_not_what_was_signed(root):
    assert Urllib3Transport()(Request("POST", f"{root}/redirect", {}, b"{}")).status == 302
    assert len(Server.seen) == 1


def test_no_one_listening_is_told(root):
    with pytest.raises(ServiceUnavailable):
        Urllib3Transport(connect_timeout=0.2)(Request("GET", "http://127.0.0.1:9", {}, None))
