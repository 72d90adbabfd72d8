"""The API is down while consumers finish their work: nothing that is done is failed, or done again."""

import boto3
import pytest

from fanin import ReceivedMessage, Tracker
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import HttpsRequest, Response, SigV4, Urllib3Transport
from fanin.client.sqs import sqs_client
from fanin.local import Stack

DOWN = Response(503, {}, b'{"message": "Service Unavailable"}')


class Gateway:
    """Between the library and the deployed API; while it is down, no request arrives."""

    def __init__(self) -> None:
        self.down = False
        self._transport = Urllib3Transport(read_timeout=120)

    def __call__(self, request: HttpsRequest) -> Response:
        return DOWN if self.down else self._transport(request)


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def behind(stack: Stack, caller: boto3.Session, gateway: Gateway, local_environment: None) -> Tracker:
    """A tracker of another process than the producer's, which has never heard of the batch."""
    api = HttpsApi(stack.api_url, sign=SigV4(caller), transport=gateway)
    return Tracker(HttpsServices(api), lambda: sqs_client(caller), stack.ack_queue_url)


@pytest.mark.parametrize("known", [True, False], ids=["a batch it has asked for", "a batch it has not"])
def test_work_that_was_done_during_an_outage_is_marked_after_it(
    stack, tracker, subscriber, behind, gateway, known
):
    # Given messages that may be received five times
    with tracker.batch(user_key="outage") as batch:
        batch.send(stack.work_queue_url, [{"n": n} for n in range(5)])
    if known:
        behind.status(batch.id)
    handled: list[int] = []

    def handle(message: ReceivedMessage) -> None:
        handled.append(message.json()["n"])

    # When a consumer does their work while the API is down
    gateway.down = True
    consumer = behind.consumer(stack.work_queue_url, handle, wait=1, visibility_timeout=1)
    while len(handled) < 5:
        consumer.poll()
    # Then each was done once, and the batch completes without a failure
    assert consumer.poll() == 0
    assert sorted(handled) == [0, 1, 2, 3, 4]
    event = subscriber.only_event_of(batch.id)
    assert (event["detail-type"], event["detail"]["failed"]) == ("Batch Completed", 0)
