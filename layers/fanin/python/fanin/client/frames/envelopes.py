"""Envelopes: payloads with their place in a frame, written as JSON or as compact protobuf.

The protobuf form is this message, in the standard encoding, so that any language can read it::

    message Envelope {
      uint64 frame = 1;         // 1 + 1 to 8 bytes; at most 5 for ids below 2^32
      uint32 index = 2;         // 1 + 1 to 5 bytes
      Type type = 3;            // 1 + 1 bytes; left out for application/octet-stream
      string other_type = 4;    // a content type that Type does not name
      bytes payload = 5;        // 1 + 1 to 5 bytes of length, then the payload
    }
    enum Type { OCTET_STREAM = 0; JSON = 1; TEXT = 2; PROTOBUF = 3; AVRO = 4; }

So it takes at most 1+5 + 1+5 + 2 + 1+5 = 20 bytes besides the payload, for frame ids below 2^32 and types in
the enum. The code is written by hand, because five fields do not justify a dependency. See "Encoding",
Protocol Buffers Documentation.
"""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, runtime_checkable

from fanin.domain import limits
from fanin.domain.frames import Ticket
from fanin.domain.ids import MAX_BATCH_ID, MAX_COUNT
from fanin.errors import InvalidRequest

OCTETS: Final = "application/octet-stream"
_TYPES: Final = (OCTETS, "application/json", "text/plain", "application/protobuf", "application/avro")

_VARINT, _BYTES = 0, 2
_FRAME, _INDEX, _TYPE, _OTHER_TYPE, _PAYLOAD = 1, 2, 3, 4, 5
_LONGEST: Final = 70  # most bits of a varint, seven in a byte


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message of a frame.

    Attributes:
        frame: id of the frame.
        index: its place in the frame, from 0.
        payload: what is delivered.
        content_type: media type of the payload, such as ``application/json``.
    """

    frame: int
    index: int
    payload: bytes
    content_type: str = OCTETS

    @property
    def ticket(self) -> Ticket:
        """What a receiver claims: frame and index."""
        return Ticket(self.frame, self.index)


def check_content_type(value: object) -> str:
    """Return a content type, if every codec and every buffer can carry it.

    Raises:
        InvalidRequest: it is not text, is too long, or has one half of a surrogate pair.
    """
    return limits.text("a content type", value, limits.MAX_CONTENT_TYPE)


Transport: TypeAlias = Callable[[Sequence[Envelope]], object]
"""Sends envelopes of one frame.

It raises an error of fanin, or OSError, if some may not have been sent; they are sent again later. It raises
``EnvelopesRefused`` for those that it can never send; they are set aside. An error that blames what is in the
envelopes (``InvalidRequest``, or any other) is traced to the envelope, so that the others are sent.
"""


@runtime_checkable
class PayloadCheck(Protocol):
    """A ``Transport`` that knows beforehand what it can never send, as ``SqsTransport`` does."""

    def check(self, payload: bytes, content_type: str) -> None:
        """Check that a payload can be sent.

        Raises:
            InvalidRequest: the payload can never be sent.
        """


@dataclass(frozen=True, slots=True)
class Notice:
    """A message from a frame's reply channel.

    Attributes:
        kind: ``Complete Frame``, ``Frame Ended`` or ``Repeat Requested``.
        frame: id of the frame.
    """

    kind: str
    frame: int


class Codec(Protocol):
    """Writes and reads envelopes: as text, which SQS requires, or as bytes for other transports.

    What cannot be written or read raises InvalidRequest.
    """

    def encode(self, envelope: Envelope) -> bytes: ...

    def decode(self, data: bytes) -> Envelope: ...

    def encode_text(self, envelope: Envelope) -> str: ...

    def decode_text(self, text: str) -> Envelope: ...


class JsonCodec:
    """Writes envelopes as JSON, for people and for receivers of any kind.

    A payload that is not UTF-8 stands in ``payload64``, in base64.

        >>> JsonCodec().encode_text(Envelope(7, 0, b"hello", "text/plain"))
        '{"frame":7,"index":0,"type":"text/plain","payload":"hello"}'
    """

    def encode_text(self, envelope: Envelope) -> str:
        check_content_type(envelope.content_type)
        body: dict[str, object] = {
            "frame": envelope.frame,
            "index": envelope.index,
            "type": envelope.content_type,
        }
        try:
            body["payload"] = envelope.payload.decode()
        except UnicodeDecodeError:
            body["payload64"] = base64.b64encode(envelope.payload).decode()
        return json.dumps(body, separators=(",", ":"))

    def decode_text(self, text: str) -> Envelope:
        try:
            body = json.loads(text)
            payload = (
                base64.b64decode(body["payload64"], validate=True)
                if "payload64" in body
                else body["payload"].encode()
            )
            return _received(body["frame"], body["index"], payload, body["type"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _no_envelope(error) from error

    def encode(self, envelope: Envelope) -> bytes:
        return self.encode_text(envelope).encode()

    def decode(self, data: bytes) -> Envelope:
        try:
            return self.decode_text(data.decode())
        except UnicodeDecodeError as error:
            raise _no_envelope(error) from error


class ProtobufCodec:
    """Writes envelopes as protobuf, at most 20 bytes besides the payload; as text it is base64.

    >>> ProtobufCodec().encode(Envelope(300, 1, b"hi", "text/plain")).hex()
    '08ac02100118022a026869'
    """

    def encode(self, envelope: Envelope) -> bytes:
        parts = [_number(_FRAME, envelope.frame), _number(_INDEX, envelope.index)]
        if envelope.content_type in _TYPES:
            parts.append(_number(_TYPE, _TYPES.index(envelope.content_type)))
        else:
            parts.append(_text(_OTHER_TYPE, check_content_type(envelope.content_type).encode()))
        return b"".join([*parts, _text(_PAYLOAD, envelope.payload)])

    def decode(self, data: bytes) -> Envelope:
        try:
            numbers, texts = _fields(data)
            other = texts.get(_OTHER_TYPE, b"").decode()
            return _received(
                numbers.get(_FRAME, 0),
                numbers.get(_INDEX, 0),
                texts.get(_PAYLOAD, b""),
                other or _TYPES[numbers.get(_TYPE, 0)],
            )
        except (ValueError, IndexError) as error:
            raise _no_envelope(error) from error

    def encode_text(self, envelope: Envelope) -> str:
        return base64.b64encode(self.encode(envelope)).decode()

    def decode_text(self, text: str) -> Envelope:
        try:
            return self.decode(base64.b64decode(text, validate=True))
        except ValueError as error:
            raise _no_envelope(error) from error


def _received(frame: object, index: object, payload: bytes, content_type: object) -> Envelope:
    """Make an envelope of what was read; no service has other frames and indices than these.

    Raises:
        InvalidRequest: a field is not what it should be.
    """
    if not isinstance(content_type, str):
        raise InvalidRequest(f"type must be text, not {limits.shown(content_type)}")
    return Envelope(
        limits.whole("frame", frame, 0, MAX_BATCH_ID),
        limits.whole("index", index, 0, MAX_COUNT),
        payload,
        content_type,
    )


def _fields(data: bytes) -> tuple[dict[int, int], dict[int, bytes]]:
    """Read a message's fields by number: varints, and byte strings; of a repeated field the last counts."""
    numbers: dict[int, int] = {}
    texts: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        key, at = _read(data, at)
        value, at = _read(data, at)
        match key & 7:
            case 0:
                numbers[key >> 3] = value
            case 2 if at + value <= len(data):
                texts[key >> 3] = data[at : at + value]
                at += value
            case _:
                raise ValueError("the message is cut short, or has a field of an unknown wire type")
    return numbers, texts


def _varint(value: int) -> bytes:
    if value < 0x80:  # noqa: PLR2004 - seven bits a byte
        return bytes([value])
    return bytes([value & 0x7F | 0x80]) + _varint(value >> 7)


def _read(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint and the position behind it.

    Raises:
        IndexError: the data ends before the varint does.
        ValueError: the varint has more than ten bytes.
    """
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that there is more
            return value, at
        if shift >= _LONGEST:
            raise ValueError("a varint has more than ten bytes")


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3 | _VARINT]) + _varint(value) if value else b""


def _text(field: int, value: bytes) -> bytes:
    return bytes([field << 3 | _BYTES]) + _varint(len(value)) + value if value else b""


def _no_envelope(error: Exception) -> InvalidRequest:
    return InvalidRequest(f"not an envelope in the form of this codec: {error}")
