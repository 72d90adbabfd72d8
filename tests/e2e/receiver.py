"""A webhook receiver on this machine: HTTPS with a certificate for localhost, which it signs itself."""

import datetime as dt
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CERTIFICATE = Path(__file__).resolve().parents[2] / ".fanin" / "receiver" / "certificate.pem"
"""Of the receiver of e2e tests; the deployed function of targets trusts it."""


class Received(NamedTuple):
    """A request.

    Attributes:
        path: of the request.
        headers: by name in lower case.
        body: of the request.
    """

    path: str
    headers: dict[str, str]
    body: bytes


def write_certificate(file: Path, host: str = "localhost") -> Path:
    """Write a certificate for a host, and beside it its key; returns the file of the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = file.with_suffix(".key")
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return secret


class Receiver:
    """Answers 200, or the status that a test has set for the path.

    Args:
        certificate: file of the certificate; it is written, with its key, unless it is there.
        address: where it listens.
        host: whom the certificate is for.

    Attributes:
        received: every request, in order.
        statuses: path → status of the answer; 302 leads to ``/elsewhere``.
        port: TCP port.
    """

    def __init__(self, certificate: Path, *, address: str = "127.0.0.1", host: str = "localhost") -> None:
        self.received: list[Received] = []
        self.statuses: dict[str, int] = {}
        self._server = ThreadingHTTPServer((address, 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secret = certificate.with_suffix(".key")
        context.load_cert_chain(
            certificate, secret if secret.exists() else write_certificate(certificate, host)
        )
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, path: str, host: str = "localhost") -> str:
        return f"https://{host}:{self.port}{path}"

    def of(self, path: str) -> list[Received]:
        """The requests to a path."""
        return [one for one in self.received if one.path == path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append(Received(self.path, headers, body))
                status = receiver.statuses.get(self.path, 200)
                self.send_response(status)
                if status == 302:
                    self.send_header("location", receiver.url("/elsewhere"))
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        return Handler
