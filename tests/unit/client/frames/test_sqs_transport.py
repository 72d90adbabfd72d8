"""Envelopes that are sent to a queue, and those that the queue never takes."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.client.frames.envelopes import Envelope, JsonCodec, ProtobufCodec
from fanin.client.frames.sqs_transport import SqsTransport
from fanin.errors import EnvelopesRefused, InvalidRequest, NotConfigured, RequestTooLarge, Throttled
from tests.unit.client.conftest import Faulty, received
from tests.unit.client.frames.conftest import CODECS, envelopes


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
def test_envelopes_arrive_as_they_were_sent(sqs: Any, queue: str, codec: Any) -> None:
    SqsTransport(sqs, queue, codec)(envelopes(25))
    bodies = [message["Body"] for message in received(sqs, queue)]
    assert sorted(map(codec.decode_text, bodies), key=lambda one: one.index) == envelopes(25)


def test_a_request_has_no_more_bytes_than_a_queue_accepts(faulty: Faulty, queue: str) -> None:
    SqsTransport(faulty, queue, ProtobufCodec())(envelopes(5, size=80_000))  # type: ignore[arg-type]
    sizes = [
        sum(len(entry["MessageBody"].encode()) for entry in request["Entries"])
        for _, request in faulty.requests
    ]
    assert len(sizes) > 1
    assert max(sizes) <= 262_144


def test_entries_that_the_queue_does_not_accept_are_an_error(faulty: Faulty, queue: str) -> None:
    faulty.instead(
        "send_message_batch",
        lambda real, a: {"Failed": [{**e, "Code": "InternalError"} for e in a["Entries"][:2]]},
    )
    with pytest.raises(Throttled, match=f"{queue} did not accept 4 of 12 envelopes"):
        SqsTransport(faulty, queue)(envelopes(12))  # type: ignore[arg-type]


def test_what_can_never_be_sent_is_named_and_the_others_are_sent(sqs: Any, queue: str) -> None:
    # Given a queue that takes 1,024 bytes, and envelopes of which one is longer and one cannot be written
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"MaximumMessageSize": "1024"})
    odd = [Envelope(7, 3, b"x" * 1_100), Envelope(7, 4, "text")]  # type: ignore[arg-type]
    # When
    with pytest.raises(EnvelopesRefused, match="never takes 2 of 5 envelopes") as refused:
        SqsTransport(sqs, queue)([*odd, *envelopes(3)])
    # Then
    assert refused.value.reasons.keys() == {3, 4}
    assert "the codec cannot write this payload" in refused.value.reasons[4]
    assert len(received(sqs, queue)) == 3


@pytest.mark.parametrize(
    ("code", "for_good"),
    [("InvalidMessageContents", True), ("InvalidParameterValue", True), ("KmsThrottled", False)],
)
def test_only_a_failure_that_blames_the_content_is_for_good(
    faulty: Faulty, queue: str, code: str, for_good: bool
) -> None:
    failed = {"Id": "1", "Code": code, "SenderFault": True, "Message": "sorry"}
    faulty.instead("send_message_batch", lambda real, a: {"Failed": [failed]})
    with pytest.raises(EnvelopesRefused if for_good else Throttled) as raised:
        SqsTransport(faulty, queue)(envelopes(3))  # type: ignore[arg-type]
    if isinstance(raised.value, EnvelopesRefused):
        assert raised.value.reasons == {1: f"{code}: sorry"}


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
def test_a_payload_is_checked_as_its_envelope_will_be(faulty: Faulty, queue: str, codec: Any) -> None:
    transport = SqsTransport(faulty, queue, codec, request_bytes=1_000)  # type: ignore[arg-type]
    transport.check(b"x" * 700, "text/plain")
    with pytest.raises(RequestTooLarge, match="but a queue takes 1000"):
        transport.check(b"x" * 990, "text/plain")
    with pytest.raises(InvalidRequest, match="cannot write"):
        transport.check("text", "text/plain")  # type: ignore[arg-type]
    assert faulty.requests == []


def test_a_character_that_sqs_does_not_take_is_found_beforehand(faulty: Faulty, queue: str) -> None:
    class Plain(JsonCodec):
        def encode_text(self, envelope: Envelope) -> str:
            return envelope.payload.decode()

    transport = SqsTransport(faulty, queue, Plain())  # type: ignore[arg-type]
    transport.check("tab\t, newline\n, é, 🙂".encode(), "text/plain")
    with pytest.raises(InvalidRequest, match=r"U\+000B at 4, which no SQS message"):
        transport.check(b"line\x0b", "text/plain")
    JsonCodec().encode_text(Envelope(7, 0, b"line\x0b"))
    SqsTransport(faulty, queue).check(b"line\x0b", "text/plain")  # type: ignore[arg-type]


def test_a_queue_that_does_not_exist_is_named(sqs: Any, queue: str) -> None:
    with pytest.raises(NotConfigured, match="elsewhere"):
        SqsTransport(sqs, queue.replace("work", "elsewhere"))(envelopes(1))


def test_a_url_that_nobody_can_send_is_refused(faulty: Faulty) -> None:
    with pytest.raises(InvalidRequest, match="queue_url must be text of 1 to 1024"):
        SqsTransport(faulty, "")  # type: ignore[arg-type]
