"""Envelopes: a payload that says which frame it belongs to, as JSON or as compact protobuf.

The protobuf form is this message, in the standard encoding, so that any language can read it::

    message Envelope {
      uint64 frame = 1;         // 1 + 1 to 8 bytes; at most 5 for ids below 2^32
      uint32 index = 2;         // 1 + 1 to 5 bytes
      Type type = 3;            // 1 + 1 bytes; left out for application/octet-stream
      string other_type = 4;    // a content type that Type does not name
      bytes payload = 5;        // 1 + 1 to 5 bytes of length, then the payload
    }
    enum Type { OCTET_STREAM = 0; JSON = 1; TEXT = 2; PROTOBUF = 3; AVRO = 4; }

So it is at most 1+5 + 1+5 + 2 + 1+5 = 20 bytes over the payload for ids below 2^32 and the types of the enum.
It is written here by hand: five fields do not earn a dependency.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Final, Protocol

from fanin.domain.frames import Ticket
from fanin.errors import InvalidRequest

OCTETS: Final = "application/octet-stream"
_TYPES: Final = (OCTETS, "application/json", "text/plain", "application/protobuf", "application/avro")

_VARINT, _BYTES = 0, 2
_FRAME, _INDEX, _TYPE, _OTHER_TYPE, _PAYLOAD = 1, 2, 3, 4, 5
_LONGEST: Final = 70  # bits that a varint may carry, seven a byte


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message of a frame.

    Attributes:
        frame: id of the frame.
        index: its place in the frame, from 0.
        payload: what is delivered.
        content_type: what the payload is.
    """

    frame: int
    index: int
    payload: bytes
    content_type: str = OCTETS

    @property
    def ticket(self) -> Ticket:
        return Ticket(self.frame, self.index)


class Codec(Protocol):
    """Writes envelopes as text, the only body that SQS takes, or as bytes for other transports."""

    def encode(self, envelope: Envelope) -> bytes: ...

    def decode(self, data: bytes) -> Envelope:
        """Read an envelope; raises InvalidRequest if it is none."""
        ...

    def encode_text(self, envelope: Envelope) -> str: ...

    def decode_text(self, text: str) -> Envelope:
        """Read an envelope; raises InvalidRequest if it is none."""
        ...


class JsonCodec:
    """``{"frame": 7, "index": 0, "type": "text/plain", "payload": "…"}``, or ``payload64``."""

    def encode_text(self, envelope: Envelope) -> str:
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
            return Envelope(_whole(body["frame"]), _whole(body["index"]), payload, str(body["type"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_envelope(error) from error

    def encode(self, envelope: Envelope) -> bytes:
        return self.encode_text(envelope).encode()

    def decode(self, data: bytes) -> Envelope:
        try:
            return self.decode_text(data.decode())
        except UnicodeDecodeError as error:
            raise _no_envelope(error) from error


class ProtobufCodec:
    """The compact form; as text it is base64."""

    def encode(self, envelope: Envelope) -> bytes:
        parts = [_number(_FRAME, envelope.frame), _number(_INDEX, envelope.index)]
        if envelope.content_type in _TYPES:
            parts.append(_number(_TYPE, _TYPES.index(envelope.content_type)))
        else:
            parts.append(_text(_OTHER_TYPE, envelope.content_type.encode()))
        return b"".join([*parts, _text(_PAYLOAD, envelope.payload)])

    def decode(self, data: bytes) -> Envelope:
        try:
            numbers, texts = _fields(data)
            other = texts.get(_OTHER_TYPE, b"").decode()
            return Envelope(
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


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("frame and index are whole numbers")
    return value


def _fields(data: bytes) -> tuple[dict[int, int], dict[int, bytes]]:
    """Read the fields of a message: numbers, and what has a length; the last of a kind counts."""
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
                raise ValueError("it is cut short, or has a field of another wire type")
    return numbers, texts


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint, and where the next byte is; raises IndexError at the end of the data."""
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that there is more
            return value, at
        if shift >= _LONGEST:
            raise ValueError("a number is too long")


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3 | _VARINT]) + _varint(value) if value else b""


def _text(field: int, value: bytes) -> bytes:
    return bytes([field << 3 | _BYTES]) + _varint(len(value)) + value if value else b""


def _no_envelope(error: Exception) -> InvalidRequest:
    return InvalidRequest(f"this is no envelope of the codec's form: {error}")
