"""The whole service from the real template, deployed once for the session, with policies enforced."""

import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest

from fanin import names
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import SigV4, Urllib3Transport
from fanin.client.sqs import sqs_client
from fanin.client.tracker import Tracker
from fanin.local import CHECKOUT, INPUTS, App, Stack, emulator
from fanin.local.locks import exclusive
from tests.e2e.deployment import Deployment, Subscriber, api_caller
from tests.e2e.receiver import CERTIFICATE, write_certificate
from tests.e2e.recording import LAUNCHER, Recording
from tests.smoke.account import Deployed

HERE = Path(__file__).parent
APP = App(HERE / "app.py", [*(CHECKOUT / name for name in INPUTS), HERE / "app.py", HERE / "functions"])
CERTIFICATE_SECONDS = 12 * 3_600
"""Age at which a certificate is replaced; it is valid for a day."""


@pytest.fixture(scope="session")
def policies_enforced() -> bool:
    return True


@pytest.fixture(scope="session")
def stack_app() -> dict[str, Any]:
    """The app of ``app.py``, whose function of targets trusts the certificate of this machine's receiver."""
    with exclusive(CERTIFICATE.with_suffix(".lock")):
        if not CERTIFICATE.exists() or time.time() - CERTIFICATE.stat().st_mtime > CERTIFICATE_SECONDS:
            write_certificate(CERTIFICATE)
    return {"app": APP, "context": {"unrouted": "keep", "console": True}}


@pytest.fixture(scope="session", autouse=True)
def _recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Asks, for all calls of functions in this session, whether AWS would allow them."""
    recording = Recording(tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emulator, "LAUNCHER", LAUNCHER)
        yield
    recording.keep()
    assert recording.denied() == []
    assert recording.refused() == set()


@pytest.fixture(scope="session", autouse=True)
def _clients() -> Iterator[None]:
    """Makes each client of boto3 once: that costs more than most calls."""
    make, made = Stack.client, dict[tuple[str, str], Any]()

    def client(self: Stack, service: str) -> Any:
        where = (self.endpoint_url, service)
        return made.get(where) or made.setdefault(where, make(self, service))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stack, "client", client)
        yield


@pytest.fixture(scope="session")
def caller(stack: Stack) -> boto3.Session:
    """A user who may only call the API and use queues."""
    return stack.session() if isinstance(stack, Deployed) else api_caller(stack)


@pytest.fixture
def new_tracker(stack: Stack, caller: boto3.Session, local_environment: None) -> Callable[[], Tracker]:
    """Creates trackers over the deployed API, each with connections of its own to it.

    Their timeout is long: in a burst of first calls, calls wait for Lambda processes to start.
    """

    sqs = cache(lambda: sqs_client(caller))

    def make() -> Tracker:
        api = HttpsApi(stack.api_url, sign=SigV4(caller), transport=Urllib3Transport(read_timeout=120))
        return Tracker(HttpsServices(api), sqs, stack.ack_queue_url)

    return make


@pytest.fixture
def tracker(new_tracker: Callable[[], Tracker]) -> Tracker:
    return new_tracker()


@pytest.fixture(scope="session")
def deployment(stack: Stack) -> Deployment:
    return Deployment(stack, stack.name) if isinstance(stack, Deployed) else Deployment(stack)


@pytest.fixture(scope="session")
def subscriber(deployment: Deployment) -> Iterator[Subscriber]:
    subscriber = Subscriber(deployment)
    yield subscriber
    subscriber.close()


@pytest.fixture
def queue_url(stack: Stack) -> str:
    """A queue of the test's own."""
    url: str = stack.client("sqs").create_queue(QueueName=f"test-{uuid.uuid4()}")["QueueUrl"]
    return url


@pytest.fixture
def channel(stack: Stack) -> Callable[[], str]:
    """Makes queues of the test's own that fanin may send to."""
    sqs = stack.client("sqs")

    def make() -> str:
        tags = {names.CHANNEL_TAG: "test"}
        url: str = sqs.create_queue(QueueName=f"channel-{uuid.uuid4()}", tags=tags)["QueueUrl"]
        return url

    return make


@pytest.fixture
def direct(local_environment: None) -> Tracker:
    """A tracker directly on the tables, with root's keys."""
    return Tracker.direct()
