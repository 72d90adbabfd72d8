"""A receiver on this machine, and webhooks that trust it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.receiver import Receiver


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
