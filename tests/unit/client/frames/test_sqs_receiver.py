"""Messages of a queue that hold envelopes: which come again, and which are deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fanin.client.frames.envelopes import Envelope, JsonCodec
from fanin.client.frames.receiver import Disposition
from fanin.client.frames.sqs_receiver import SqsReceiver
from fanin.client.frames.sqs_transport import SqsTransport
from fanin.errors import InvalidRequest
from tests.unit.client.conftest import Faulty
from tests.unit.client.frames.conftest import CODECS, envelopes


class Receiver:
    """Receives envelopes as it was told to, by index; others are handled.

    Attributes:
        seen: all envelopes, in order.
    """

    def __init__(self, **dispositions: Disposition) -> None:
        self._dispositions = {int(name.removeprefix("at_")): what for name, what in dispositions.items()}
        self.seen: list[Envelope] = []

    def receive(self, envelopes: Sequence[Envelope]) -> list[Disposition]:
        self.seen += envelopes
        return [self._dispositions.get(one.index, Disposition.HANDLED) for one in envelopes]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
def test_on_lambda_messages_that_are_not_settled_come_again(codec: Any) -> None:
    # Given three envelopes: handled, dropped, leased by another; and two other bodies
    receiver = Receiver(at_1=Disposition.DROPPED, at_2=Disposition.REDELIVER)
    bodies = [*(codec.encode_text(one) for one in envelopes(3)), "nonsense", "{}"]
    records = [{"messageId": f"m{n}", "body": body} for n, body in enumerate(bodies)]
    # When
    answer = SqsReceiver(receiver, codec)({"Records": records})  # type: ignore[arg-type]
    # Then
    assert answer == {"batchItemFailures": [{"itemIdentifier": name} for name in ("m2", "m3", "m4")]}
    assert receiver.seen == envelopes(3)


def test_whatever_a_codec_raises_concerns_its_message_only() -> None:
    class Fussy(JsonCodec):
        def decode_text(self, text: str) -> Envelope:
            return super().decode_text(text) if text.startswith("{") else Envelope(**{text: 1})  # type: ignore[arg-type]

    records = [{"messageId": "m0", "body": "odd"}, {"messageId": "m1"}]
    records.append({"messageId": "m2", "body": JsonCodec().encode_text(envelopes(1)[0])})
    answer = SqsReceiver(Receiver(), Fussy())({"Records": records})  # type: ignore[arg-type]
    assert answer == {"batchItemFailures": [{"itemIdentifier": name} for name in ("m0", "m1")]}


def test_an_empty_event_is_handled_and_one_of_another_service_refused() -> None:
    receiver = SqsReceiver(Receiver())  # type: ignore[arg-type]
    assert receiver({"Records": []}) == {"batchItemFailures": []}
    with pytest.raises(InvalidRequest, match="not an event of SQS"):
        receiver({"detail-type": "Batch Completed"})


def test_polling_deletes_what_is_settled_and_leaves_the_rest(sqs: Any, queue: str) -> None:
    # Given
    SqsTransport(sqs, queue)(envelopes(3))
    sqs.send_message(QueueUrl=queue, MessageBody="nonsense")
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "0"})
    receiver = Receiver(at_1=Disposition.DROPPED, at_2=Disposition.REDELIVER)
    # When
    count = SqsReceiver(receiver).poll(sqs, queue, wait=0)  # type: ignore[arg-type]
    # Then
    assert count == 4
    left = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    assert {message["Body"] for message in left} == {
        "nonsense",
        JsonCodec().encode_text(envelopes(3)[2]),
    }


def test_it_asks_for_ten_messages_for_as_long_as_sqs_can_and_of_none_deletes_none(
    faulty: Faulty, queue: str
) -> None:
    faulty.instead("receive_message", lambda real, arguments: {})
    assert SqsReceiver(Receiver()).poll(faulty, queue) == 0  # type: ignore[arg-type]
    asked = {"QueueUrl": queue, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20}
    assert faulty.requests == [("receive_message", asked)]


def test_a_wait_or_a_url_that_sqs_does_not_take_is_refused(faulty: Faulty, queue: str) -> None:
    for wait in (-1, 21):
        with pytest.raises(InvalidRequest, match="wait must be a whole number from 0 to 20"):
            SqsReceiver(Receiver()).poll(faulty, queue, wait=wait)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="queue_url has one half of a surrogate pair"):
        SqsReceiver(Receiver()).poll(faulty, "https://sqs/\ud800")  # type: ignore[arg-type]
