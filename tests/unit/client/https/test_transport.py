"""The transport against a server on this machine, and the ways to sign."""

import gzip
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

import boto3
import pytest
import urllib3
from botocore.credentials import Credentials

from fanin.client.https.transport import (
    Bearer,
    HttpsRequest,
    Identity,
    NotSent,
    SigV4,
    Urllib3Transport,
    unsigned,
)
from fanin.client.sqs import sqs_client
from fanin.errors import NotConfigured, ServiceUnavailable
from tests.unit.client.https.conftest import URL


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

    def do_GET(self) -> None:
        self.seen.append((self.headers["Accept-Encoding"], b""))
        packed = gzip.compress(b'{"a":1}') if self.path == "/packed" else b"no gzip at all"
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)

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
    response = Urllib3Transport()(HttpsRequest("POST", f"{root}/v1/x?a=b%2Fc", {"X-A": "1"}, b"{}"))
    assert (response.status, response.headers["retry-after"], response.body) == (201, "3", b"{}")
    assert Server.seen == [("/v1/x?a=b%2Fc", b"{}")]


def test_a_compressed_answer_is_asked_for_and_unpacked(root):
    response = Urllib3Transport()(HttpsRequest("GET", f"{root}/packed", {}, None))
    assert response.body == b'{"a":1}'
    assert Server.seen == [("gzip", b"")]


def test_an_answer_that_cannot_be_unpacked_is_no_answer(root):
    with pytest.raises(ServiceUnavailable, match="no answer from 127"):
        Urllib3Transport()(HttpsRequest("GET", f"{root}/broken", {}, None))


def test_a_connection_cut_after_the_request_is_sent_once_and_told(root):
    with pytest.raises(ServiceUnavailable, match=r"no answer from 127\.0\.0\.1") as cut:
        Urllib3Transport()(HttpsRequest("POST", f"{root}/cut", {}, b"{}"))
    assert not isinstance(cut.value, NotSent)
    assert len(Server.seen) == 1


def test_a_redirect_is_not_followed_since_its_target_is_not_what_was_signed(root):
    assert Urllib3Transport()(HttpsRequest("POST", f"{root}/redirect", {}, b"{}")).status == 302
    assert len(Server.seen) == 1


def test_a_connection_is_waited_for_5_seconds_and_an_answer_longer_than_the_gateway_takes(monkeypatch):
    made = []
    real = urllib3.PoolManager
    monkeypatch.setattr(urllib3, "PoolManager", lambda **options: made.append(options) or real(**options))
    transport = Urllib3Transport()
    for _ in range(2):
        with pytest.raises(NotSent, match="check the URL and the network"):
            transport(HttpsRequest("GET", "http://127.0.0.1:9", {}, None))
    (options,) = made  # one pool for all requests
    assert options["maxsize"] == 16
    assert (options["timeout"].connect_timeout, options["timeout"].read_timeout) == (5, 35)


@pytest.mark.parametrize(
    ("fresh", "idle", "clears"), [(False, 9, 0), (True, 0.5, 0), (True, 0.6, 1), (True, -1, 1)]
)
def test_what_must_not_be_sent_twice_goes_out_on_a_connection_that_was_not_idle(
    root, monkeypatch, fresh, idle, clears
):
    now, cleared = [1_000.0], []
    monkeypatch.setattr("fanin.client.https.transport.time.time", lambda: now[0])
    transport = Urllib3Transport()
    transport(HttpsRequest("POST", f"{root}/a", {}, b"{}"))
    monkeypatch.setattr(transport._manager(), "clear", lambda: cleared.append(now[0]))
    now[0] += idle
    transport(HttpsRequest("POST", f"{root}/b", {}, b"{}", fresh=fresh))
    assert len(cleared) == clears


class TestIdentity:
    @pytest.fixture(autouse=True)
    def profile(self, monkeypatch, tmp_path):
        """A user who has nothing but a profile with keys and a region."""
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_DEFAULT_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        config = tmp_path / "config"
        config.write_text(
            "[profile ops]\nregion = eu-north-1\naws_access_key_id = PROFILE\naws_secret_access_key = s\n"
        )
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_PROFILE", "ops")

    def test_it_is_that_of_the_profile(self):
        identity = Identity()
        assert identity.region_name == "eu-north-1"
        assert identity.get_credentials().access_key == "PROFILE"

    def test_keys_and_region_of_the_environment_go_before_it(self, monkeypatch):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVIRONMENT")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
        identity = Identity()
        assert identity.region_name == "us-west-2"
        assert identity.get_credentials().access_key == "ENVIRONMENT"
        # But what is given goes before all
        identity = Identity(Credentials("GIVEN", "s"), "ap-south-1")
        assert (identity.region_name, identity.get_credentials().access_key) == ("ap-south-1", "GIVEN")

    def test_without_any_there_is_none(self, monkeypatch):
        monkeypatch.delenv("AWS_PROFILE")
        identity = Identity()
        assert (identity.region_name, identity.get_credentials()) == (None, None)


class TestSigning:
    @pytest.fixture
    def session(self) -> boto3.Session:
        return boto3.Session("AKID", "SECRET", "TOKEN", region_name="us-west-2")

    @pytest.mark.parametrize(
        ("url", "region", "expected"),
        [
            (URL, None, "eu-west-1"),
            ("https://api.example.com", None, "us-west-2"),
            (URL, "ap-south-1", "ap-south-1"),
        ],
    )
    def test_requests_are_signed_for_the_region_of_the_api(self, session, url, region, expected):
        request = HttpsRequest(
            "GET", f"{url}/v1/batches?state=open", {"Content-Type": "application/json"}, None
        )
        headers = SigV4(session, region)(request)
        assert f"/{expected}/execute-api/aws4_request" in headers["Authorization"]
        assert headers["X-Amz-Security-Token"] == "TOKEN"
        assert headers["Content-Type"] == "application/json"

    def test_what_is_sent_is_what_is_signed(self, session):
        request = HttpsRequest("POST", f"{URL}/v1/acks", {}, b'{"items": []}')
        signatures = {
            SigV4(session)(changed)["Authorization"].rpartition("Signature=")[2]
            for changed in (
                request,
                request._replace(body=b"{}"),
                request._replace(method="PUT"),
                request._replace(url=f"{URL}/v1/acks?a=b"),
            )
        }
        assert len(signatures) == 4

    def test_missing_credentials_are_told_before_anything_is_sent(self, monkeypatch):
        class NoCredentials:
            region_name = "us-east-1"

            def get_credentials(self):
                return None

        with pytest.raises(NotConfigured, match="credentials"):
            SigV4(NoCredentials())(HttpsRequest("GET", URL, {}, None))

    def test_a_missing_region_is_told_before_anything_is_sent(self, monkeypatch):
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        with pytest.raises(NotConfigured, match="set AWS_DEFAULT_REGION"):
            SigV4(boto3.Session("AKID", "SECRET"))(HttpsRequest("GET", "https://api.example.com", {}, None))

    def test_a_bearer_token_is_asked_for_each_request(self):
        tokens = iter(["a", "b"])
        sign = Bearer(lambda: next(tokens))
        request = HttpsRequest("GET", URL, {}, None)
        assert [sign(request)["Authorization"], sign(request)["Authorization"]] == ["Bearer a", "Bearer b"]

    def test_an_open_api_gets_the_headers_as_they_are(self):
        headers = {"Content-Type": "application/json"}
        assert unsigned(HttpsRequest("GET", URL, headers, None)) == headers


@pytest.mark.parametrize("kind", ["https", "sqs"])
def test_a_process_that_is_forked_makes_connections_of_its_own(monkeypatch, kind):
    """On a connection that two processes share, each may get the other's answer."""
    # Given a server that keeps connections open, and a client that has one
    ports: list[int] = []

    class Keeping(Server):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            ports.append(self.client_address[1])
            super().do_POST()

    monkeypatch.setattr(Server, "seen", [], raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Keeping) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        session = boto3.Session("id", "secret", region_name="eu-west-1")
        transport, sqs = Urllib3Transport(), sqs_client(session, url)

        def send() -> None:
            if kind == "https":
                transport(HttpsRequest("POST", f"{url}/a", {}, b"{}"))
            else:
                sqs.purge_queue(QueueUrl=f"{url}/queue")

        send()
        send()
        # When the process forks, and both send
        child = os.fork()
        if not child:
            try:
                send()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        send()
        server.shutdown()
    # Then the child does so over a connection of its own, and the parent's is as it was
    before, again, of_child, after = ports
    assert before == again == after != of_child
