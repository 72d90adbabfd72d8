"""Envelopes that are sent to a queue, and those that the queue never takes.

Messages of a queue that hold envelopes: which come again, and which are deleted.

What is read of a reply channel, and that everything on it is deleted.
"""

import json
from collections.abc import Sequence

import pytest

from fanin.client.frames.envelopes import Envelope, JsonCodec, Notice, ProtobufCodec
from fanin.client.frames.receiver import Disposition
from fanin.client.frames.sqs import SqsReceiver, SqsTransport, queue_notices
from fanin.errors import EnvelopesRefused, InvalidRequest, NotConfigured, RequestTooLarge, Throttled
from tests.unit.client.conftest import received
from tests.unit.client.frames.conftest import CODECS, envelopes


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
def test_envelopes_arrive_as_they_were_sent(sqs, queue, codec):
    SqsTransport(sqs, queue, codec)(envelopes(25))
    bodies = [message["Body"] for message in received(sqs, queue)]
    assert sorted(map(codec.decode_text, bodies), key=lambda one: one.index) == envelopes(25)


def test_a_request_has_no_more_bytes_than_a_queue_accepts(faulty, queue):
    SqsTransport(faulty, queue, ProtobufCodec())(envelopes(5, size=80_000))
    sizes = [
        sum(len(entry["MessageBody"].encode()) for entry in request["Entries"])
        for _, request in faulty.requests
    ]
    assert len(sizes) > 1
    assert max(sizes) <= 262_144


def test_entries_that_the_queue_does_not_accept_are_an_error(faulty, queue):
    faulty.instead(
        "send_message_batch",
        lambda real, a: {"Failed": [{**e, "Code": "InternalError"} for e in a["Entries"][:2]]},
    )
    with pytest.raises(Throttled, match=f"{queue} did not accept 4 of 12 envelopes"):
        SqsTransport(faulty, queue)(envelopes(12))


def test_what_can_never_be_sent_is_named_and_the_others_are_sent(sqs, queue):
    # Given a queue that takes 1,024 bytes, and envelopes of which one is longer and one cannot be written
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"MaximumMessageSize": "1024"})
    odd = [Envelope(7, 3, b"x" * 1_100), Envelope(7, 4, "text")]
    with pytest.raises(EnvelopesRefused, match="never takes 2 of 5 envelopes") as refused:
        SqsTransport(sqs, queue)([*odd, *envelopes(3)])
    assert refused.value.reasons.keys() == {3, 4}
    assert "the codec cannot write this payload" in refused.value.reasons[4]
    assert len(received(sqs, queue)) == 3


@pytest.mark.parametrize(
    ("code", "for_good"),
    [("InvalidMessageContents", True), ("InvalidParameterValue", True), ("KmsThrottled", False)],
)
def test_only_a_failure_that_blames_the_content_is_for_good(faulty, queue, code, for_good):
    failed = {"Id": "1", "Code": code, "SenderFault": True, "Message": "sorry"}
    faulty.instead("send_message_batch", lambda real, a: {"Failed": [failed]})
    with pytest.raises(EnvelopesRefused if for_good else Throttled) as raised:
        SqsTransport(faulty, queue)(envelopes(3))
    if isinstance(raised.value, EnvelopesRefused):
        assert raised.value.reasons == {1: f"{code}: sorry"}


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
def test_a_payload_is_checked_as_its_envelope_will_be(faulty, queue, codec):
    transport = SqsTransport(faulty, queue, codec, request_bytes=1_000)
    transport.check(b"x" * 700, "text/plain")
    with pytest.raises(RequestTooLarge, match="but a queue takes 1000"):
        transport.check(b"x" * 990, "text/plain")
    with pytest.raises(InvalidRequest, match="cannot write"):
        transport.check("text", "text/plain")
    assert faulty.requests == []


def test_a_character_that_sqs_does_not_take_is_found_beforehand(faulty, queue):
    class Plain(JsonCodec):
        def encode_text(self, envelope: Envelope) -> str:
            return envelope.payload.decode()

    transport = SqsTransport(faulty, queue, Plain())
    transport.check("tab\t, newline\n, é, 🙂".encode(), "text/plain")
    with pytest.raises(InvalidRequest, match=r"U\+000B at 4, which no SQS message"):
        transport.check(b"line\x0b", "text/plain")
    JsonCodec().encode_text(Envelope(7, 0, b"line\x0b"))
    SqsTransport(faulty, queue).check(b"line\x0b", "text/plain")


def test_a_queue_that_does_not_exist_is_named(sqs, queue):
    with pytest.raises(NotConfigured, match="elsewhere"):
        SqsTransport(sqs, queue.replace("work", "elsewhere"))(envelopes(1))


def test_a_url_that_nobody_can_send_is_refused(faulty):
    with pytest.raises(InvalidRequest, match="queue_url must be text of 1 to 1024"):
        SqsTransport(faulty, "")


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
def test_on_lambda_messages_that_are_not_settled_come_again(codec):
    # Given three envelopes: handled, dropped, leased by another; and two other bodies
    receiver = Receiver(at_1=Disposition.DROPPED, at_2=Disposition.REDELIVER)
    bodies = [*(codec.encode_text(one) for one in envelopes(3)), "nonsense", "{}"]
    records = [{"messageId": f"m{n}", "body": body} for n, body in enumerate(bodies)]
    answer = SqsReceiver(receiver, codec)({"Records": records})
    assert answer == {"batchItemFailures": [{"itemIdentifier": name} for name in ("m2", "m3", "m4")]}
    assert receiver.seen == envelopes(3)


def test_whatever_a_codec_raises_concerns_its_message_only():
    class Fussy(JsonCodec):
        def decode_text(self, text: str) -> Envelope:
            return super().decode_text(text) if text.startswith("{") else Envelope(**{text: 1})

    records = [{"messageId": "m0", "body": "odd"}, {"messageId": "m1"}]
    records.append({"messageId": "m2", "body": JsonCodec().encode_text(envelopes(1)[0])})
    answer = SqsReceiver(Receiver(), Fussy())({"Records": records})
    assert answer == {"batchItemFailures": [{"itemIdentifier": name} for name in ("m0", "m1")]}


def test_an_empty_event_is_handled_and_one_of_another_service_refused():
    receiver = SqsReceiver(Receiver())
    assert receiver({"Records": []}) == {"batchItemFailures": []}
    with pytest.raises(InvalidRequest, match="not an event of SQS"):
        receiver({"detail-type": "Batch Completed"})


def test_polling_deletes_what_is_settled_and_leaves_the_rest(sqs, queue):
    SqsTransport(sqs, queue)(envelopes(3))
    sqs.send_message(QueueUrl=queue, MessageBody="nonsense")
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "0"})
    receiver = Receiver(at_1=Disposition.DROPPED, at_2=Disposition.REDELIVER)
    count = SqsReceiver(receiver).poll(sqs, queue, wait=0)
    assert count == 4
    left = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    assert {message["Body"] for message in left} == {"nonsense", JsonCodec().encode_text(envelopes(3)[2])}


def test_it_asks_for_ten_messages_for_as_long_as_sqs_can_and_of_none_deletes_none(faulty, queue):
    faulty.instead("receive_message", lambda real, arguments: {})
    assert SqsReceiver(Receiver()).poll(faulty, queue) == 0
    ((name, asked),) = faulty.requests
    assert (name, asked["MaxNumberOfMessages"], asked["WaitTimeSeconds"]) == ("receive_message", 10, 20)


@pytest.mark.parametrize("read", [SqsReceiver(Receiver()).poll, queue_notices])
def test_a_wait_or_a_url_that_sqs_does_not_take_is_refused(faulty, queue, read):
    for wait in (-1, 21):
        with pytest.raises(InvalidRequest, match="wait must be a whole number from 0 to 20"):
            read(faulty, queue, wait=wait)
    with pytest.raises(InvalidRequest, match="queue_url has one half of a surrogate pair"):
        read(faulty, "https://sqs/\ud800")


def test_notices_are_read_and_everything_is_deleted(sqs, queue):
    # Given a notice among messages of others
    bodies = [
        "nonsense",
        "[]",
        "[" * 200_000,
        json.dumps({"type": "Complete Frame"}),
        json.dumps({"type": ["Complete Frame"], "frame_id": 7}),
        json.dumps({"type": "Complete Frame", "frame_id": [7]}),
        json.dumps({"type": "Repeat Requested", "frame_id": 7, "size": 3, "missing": []}),
    ]
    for body in bodies:
        sqs.send_message(QueueUrl=queue, MessageBody=body)
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "0"})
    # When, then
    notices = queue_notices(sqs, queue)
    assert list(notices()) == [Notice("Repeat Requested", 7)]
    assert list(notices()) == []
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)


@pytest.mark.parametrize(("options", "wait"), [({}, 0), ({"wait": 1}, 1)])
def test_an_empty_reply_channel_is_only_read(faulty, queue, options, wait):
    assert list(queue_notices(faulty, queue, **options)()) == []
    ((name, asked),) = faulty.requests
    assert (name, asked["WaitTimeSeconds"]) == ("receive_message", wait)
