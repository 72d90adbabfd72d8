"""Envelopes in both forms."""

import base64
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.client.frames.envelopes import OCTETS, Envelope, JsonCodec, ProtobufCodec
from fanin.client.frames.repeat_buffer import MemoryRepeatBuffer
from fanin.client.frames.repeater import Sending, send_envelopes
from fanin.errors import EnvelopesRefused, InvalidRequest, ServiceUnavailable, Throttled

ENVELOPES = st.builds(
    Envelope,
    frame=st.integers(0, 2**53 - 1),
    index=st.integers(0, 2**32 - 1),
    payload=st.binary(max_size=300),
    content_type=st.sampled_from([OCTETS, "application/json", "text/plain"]) | st.text(min_size=1),
)


@pytest.mark.parametrize("codec", [JsonCodec(), ProtobufCodec()])
@settings(max_examples=25)
@given(envelope=ENVELOPES)
def test_what_is_written_is_read(codec, envelope):
    assert codec.decode(codec.encode(envelope)) == envelope
    assert codec.decode_text(codec.encode_text(envelope)) == envelope


@pytest.mark.parametrize("content_type", [OCTETS, "application/avro"])
@pytest.mark.parametrize("size", [0, 128, 3_000_000])
def test_protobuf_takes_at_most_20_bytes_over_the_payload(size, content_type):
    envelope = Envelope(2**32 - 1, 2**32 - 1, b"x" * size, content_type)
    assert len(ProtobufCodec().encode(envelope)) - size <= 20


def test_protobuf_is_the_standard_encoding():
    # Given what protoc --encode gives for frame: 300, index: 1, type: TEXT, payload: "hi"
    encoded = bytes.fromhex("08ac02100118022a026869")
    assert ProtobufCodec().encode(Envelope(300, 1, b"hi", "text/plain")) == encoded
    assert ProtobufCodec().decode(encoded) == Envelope(300, 1, b"hi", "text/plain")


def test_protobuf_lets_pass_fields_that_it_does_not_know():
    newer = ProtobufCodec().encode(Envelope(7, 1, b"x")) + bytes.fromhex("30053a0161")
    assert ProtobufCodec().decode(newer) == Envelope(7, 1, b"x")


def test_json_is_for_people_where_the_payload_is():
    text = JsonCodec().encode_text(Envelope(7, 1, b'{"a":1}', "application/json"))
    assert text == '{"frame":7,"index":1,"type":"application/json","payload":"{\\"a\\":1}"}'
    assert "payload64" in JsonCodec().encode_text(Envelope(7, 1, b"\xff"))


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "{}", '{"frame":1,"index":0,"type":"t"}', '{"frame":1,"index":0,"payload":"x"}'),
        *(
            f'{{"frame":{frame},"index":{index},"type":"t","payload":"x"}}'
            for frame, index in (("true", 0), ('"1"', 0), (1, -1), (1.5, 0), ("NaN", 0))
        ),
        '{"frame":1,"index":0,"type":"t","payload64":"*"}',
        '{"frame":1,"index":0,"type":"t","payload":5}',
        '{"frame":1,"index":0,"type":["t"],"payload":"x"}',
        '{"frame":1,"index":0,"type":"t","payload":"\\ud800"}',
        f'{{"frame":{2**53},"index":0,"type":"t","payload":"x"}}',
        f'{{"frame":1,"index":{2**32},"type":"t","payload":"x"}}',
        f'{{"frame":{"9" * 5_000},"index":0,"type":"t","payload":"x"}}',
        "[" * 200_000,
        '{"a":' * 200_000,
    ],
)
def test_what_is_no_json_envelope_is_refused(text):
    with pytest.raises(InvalidRequest):
        JsonCodec().decode_text(text)
    with pytest.raises(InvalidRequest):
        JsonCodec().decode(b"\xff")


@pytest.mark.parametrize(
    "data",
    [
        b"\x08\x80\x80\x80\x80\x80\x80\x80\x10",
        b"\x10\x80\x80\x80\x80\x10",
        b"\x08",
        b"\x2a\x05hi",
        b"\x09\x00",
        b"\x08" + b"\xff" * 11,
        b"\x18\x63",
        b"\x22\x01\xff",
        b"\xff",
    ],
)
def test_what_is_no_protobuf_envelope_is_refused(data):
    with pytest.raises(InvalidRequest):
        ProtobufCodec().decode(data)
    for text in (base64.b64encode(data).decode(), "not base64!"):
        with pytest.raises(InvalidRequest):
            ProtobufCodec().decode_text(text)


@pytest.mark.parametrize("codec", [JsonCodec(), ProtobufCodec()])
@pytest.mark.parametrize(
    ("content_type", "why"),
    [
        ("text/\ud800", "has one half of a surrogate pair"),
        ("x" * 1_025, "must be text of 0 to 1024 characters"),
        (None, "must be text of 0 to 1024 characters"),
    ],
)
def test_a_content_type_that_cannot_be_read_again_is_not_written(codec, content_type, why):
    for write in (codec.encode, codec.encode_text):
        with pytest.raises(InvalidRequest, match=f"a content type {why}"):
            write(Envelope(7, 0, b"", content_type))


# Sending from a repeat buffer: what was sent, what failed, and what is set aside.


class Wire:
    """A transport that raises for envelopes with these indices, as it was told to."""

    def __init__(self, **errors: Exception) -> None:
        self._errors = {int(name.removeprefix("at_")): error for name, error in errors.items()}
        self.calls: list[int] = []
        self.sent: list[int] = []

    def __call__(self, envelopes: Sequence[Envelope]) -> None:
        self.calls.append(len(envelopes))
        for envelope in envelopes:
            if envelope.index in self._errors:
                raise self._errors[envelope.index]
        self.sent += [envelope.index for envelope in envelopes]


def filled(count: int) -> MemoryRepeatBuffer:
    buffer = MemoryRepeatBuffer()
    for number in range(count):
        buffer.put(b"%d" % number)
    buffer.assign(7, count)
    return buffer


def test_a_frame_is_sent_in_hundreds():
    wire = Wire()
    assert send_envelopes(wire, filled(250), 7, [(0, 3), (5, 999)]) == Sending(held=True, failed=False)
    assert wire.calls == [100, 100, 48]
    assert wire.sent == [0, 1, 2, *range(5, 250)]


def test_what_the_buffer_does_not_hold_is_not_sent():
    wire = Wire()
    assert send_envelopes(wire, filled(3), 8, [(0, 3)]) == Sending(held=False, failed=False)
    assert wire.calls == []


@pytest.mark.parametrize("error", [Throttled("busy"), ServiceUnavailable("no way"), OSError("cut off")])
def test_a_transport_that_fails_is_not_tried_with_the_rest(error, caplog):
    wire = Wire(at_120=error)
    assert send_envelopes(wire, filled(300), 7, [(0, 300)]) == Sending(held=True, failed=True)
    assert wire.calls == [100, 100]
    assert "100 envelopes of frame 7 from index 100 were not sent, repeating them later: " in caplog.text
    assert str(error) in caplog.text


@pytest.mark.parametrize("error", [InvalidRequest("odd"), ZeroDivisionError()], ids=["refusal", "defect"])
def test_an_envelope_that_breaks_the_transport_fails_alone(error):
    wire = Wire(at_2=error)
    assert send_envelopes(wire, filled(5), 7, [(0, 5)]) == Sending(held=True, failed=False)
    assert sorted(wire.sent) == [0, 1, 3, 4]


def test_what_is_refused_is_set_aside_with_its_reason():
    buffer = filled(3)
    wire = Wire(at_1=EnvelopesRefused("never", reasons={1: "too long"}))
    assert send_envelopes(wire, buffer, 7, [(0, 3)]) == Sending(held=True, failed=False)
    assert [(one.payload, one.reason) for one in buffer.aside()] == [(b"1", "too long")]


def test_ranges_are_taken_as_they_are_needed():
    taken: list[int] = []

    def ranges() -> Iterator[tuple[int, int]]:
        for start in (0, 100, 200):
            taken.append(start)
            yield start, start + 100

    send_envelopes(Wire(at_0=Throttled("busy")), filled(300), 7, ranges())
    assert taken == [0, 100]
