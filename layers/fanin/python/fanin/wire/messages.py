"""The shape of a kept message: on the API, on the ack queue, in its row and in the bucket."""

import base64
import json
from typing import Final

from fanin.domain import limits
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.errors import InvalidRequest
from fanin.wire.json_text import compact
from fanin.wire.json_types import TEXT, Json, JsonType, map_of, or_null, text
from fanin.wire.shapes import request


def _encode(attribute: MessageAttribute) -> Json:
    value = attribute.value
    if isinstance(value, bytes):
        return {"type": attribute.data_type, "binary": base64.b64encode(value).decode()}
    return {"type": attribute.data_type, "value": value}


def _decode(body: Json) -> MessageAttribute:
    if body.keys() not in ({"type", "value"}, {"type", "binary"}):
        raise InvalidRequest("an attribute of a message has a type, and a value or a binary")
    if "value" in body:
        return MessageAttribute(body["type"], body["value"])
    try:
        return MessageAttribute(body["type"], base64.b64decode(body["binary"], validate=True))
    except ValueError as error:
        raise InvalidRequest(
            f"the value of a binary attribute is not base64 ({error}); write its bytes as base64"
        ) from error


_ATTRIBUTE: Final[JsonType[MessageAttribute]] = JsonType(
    {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "minLength": 1, "maxLength": limits.MAX_MESSAGE_ATTRIBUTE_TYPE},
            "value": {"type": "string"},
            "binary": {"type": "string", "contentEncoding": "base64"},
        },
        "minProperties": 2,
        "maxProperties": 2,
        "additionalProperties": False,
    },
    _encode,
    _decode,
)
_ATTRIBUTES: Final = map_of(
    _ATTRIBUTE,
    maxProperties=limits.MAX_MESSAGE_ATTRIBUTES,
    propertyNames={"minLength": 1, "maxLength": limits.MAX_MESSAGE_ATTRIBUTE_NAME},
)

KEPT_MESSAGE: Final = request(
    "KeptMessage",
    KeptMessage,
    body=TEXT,
    attributes=_ATTRIBUTES.left_out_if_empty(),
    group_id=or_null(text(limits.MAX_MESSAGE_GROUP, least=1)).left_out_if_empty(),
)
"""The message of a failed item; a binary attribute is written as base64."""


def pack(message: KeptMessage) -> bytes:
    """Write a message as it is kept: JSON in UTF-8."""
    return compact(KEPT_MESSAGE.encode(message), "the message of a failure").encode()


def unpack(content: bytes) -> KeptMessage:
    """Read a message that ``pack`` has written."""
    return KEPT_MESSAGE.decode(json.loads(content))
