"""Envelopes in both forms."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.client.frames.envelopes import OCTETS, Codec, Envelope, JsonCodec, ProtobufCodec
from fanin.errors import InvalidRequest

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
def test_what_is_written_is_read(codec: Codec, envelope: Envelope) -> None:
    assert codec.decode(codec.encode(envelope)) == envelope
    assert codec.decode_text(codec.encode_text(envelope)) == envelope


@pytest.mark.parametrize("content_type", [OCTETS, "application/avro"])
@pytest.mark.parametrize("size", [0, 128, 3_000_000])
def test_protobuf_takes_at_most_20_bytes_over_the_payload(size: int, content_type: str) -> None:
    envelope = Envelope(2**32 - 1, 2**32 - 1, b"x" * size, content_type)
    assert len(ProtobufCodec().encode(envelope)) - size <= 20


def test_protobuf_is_the_standard_encoding() -> None:
    # Given what protoc --encode gives for frame: 300, index: 1, type: TEXT, payload: "hi"
    encoded = bytes.fromhex("08ac02100118022a026869")
    assert ProtobufCodec().encode(Envelope(300, 1, b"hi", "text/plain")) == encoded
    assert ProtobufCodec().decode(encoded) == Envelope(300, 1, b"hi", "text/plain")


def test_protobuf_lets_pass_fields_that_it_does_not_know() -> None:
    newer = ProtobufCodec().encode(Envelope(7, 1, b"x")) + bytes.fromhex("30053a0161")
    assert ProtobufCodec().decode(newer) == Envelope(7, 1, b"x")


def test_json_is_for_people_where_the_payload_is() -> None:
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
def test_what_is_no_json_envelope_is_refused(text: str) -> None:
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
def test_what_is_no_protobuf_envelope_is_refused(data: bytes) -> None:
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
def test_a_content_type_that_cannot_be_read_again_is_not_written(
    codec: Codec, content_type: str, why: str
) -> None:
    for write in (codec.encode, codec.encode_text):
        with pytest.raises(InvalidRequest, match=f"a content type {why}"):
            write(Envelope(7, 0, b"", content_type))
