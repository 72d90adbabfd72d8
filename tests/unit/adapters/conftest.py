import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber

from tests.e2e.receiver import Receiver


@pytest.fixture(autouse=True)
def account_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients can be made, but not to reach anything: they are stubbed, or on moto."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def aws(client: Any) -> Iterator[Stubber]:
    """The answers of AWS to the test's own ``client``, all of which must be asked for."""
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("receiver") / "certificate.pem"


@pytest.fixture(scope="session")
def receiver(certificate: Path) -> Iterator[Receiver]:
    receiver = Receiver(certificate, host="hooks.example.com")
    yield receiver
    receiver.close()


@pytest.fixture
def trusting(receiver: Receiver, certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))
