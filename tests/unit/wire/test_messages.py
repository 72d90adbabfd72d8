"""The shape of a kept message."""

import json

import pytest

from fanin.domain import limits
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.entry.http.validation import checked
from fanin.errors import InvalidRequest
from fanin.wire.messages import KEPT_MESSAGE, pack, unpack

TEXT = {"type": "String", "value": "x"}


def test_what_a_message_does_not_have_is_left_out():
    assert KEPT_MESSAGE.encode(KeptMessage("text")) == {"body": "text"}
    assert KEPT_MESSAGE.decode({"body": "text"}) == KeptMessage("text")


def test_a_message_is_kept_as_short_json_and_read_from_it():
    message = KeptMessage("☂", {"blob": MessageAttribute("Binary", b"\x00")}, "group")

    assert pack(message) == (
        '{"body":"☂","attributes":{"blob":{"type":"Binary","binary":"AA=="}},"group_id":"group"}'.encode()
    )
    assert unpack(pack(message)) == message


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {str(number): TEXT for number in range(limits.MAX_MESSAGE_ATTRIBUTES)},
        {"n" * limits.MAX_MESSAGE_ATTRIBUTE_NAME: TEXT},
        {"n": {"type": "t" * limits.MAX_MESSAGE_ATTRIBUTE_TYPE, "value": ""}},
        {"n": {"type": "Binary", "binary": ""}},
    ],
)
def test_a_message_may_have_all_attributes_that_sqs_allows(attributes):
    body = {"body": "text", "attributes": attributes}

    assert checked(KEPT_MESSAGE, json.dumps(body)) == body


@pytest.mark.parametrize(
    "attributes",
    [
        {str(number): TEXT for number in range(limits.MAX_MESSAGE_ATTRIBUTES + 1)},
        {"": TEXT},
        {"n" * (limits.MAX_MESSAGE_ATTRIBUTE_NAME + 1): TEXT},
        {"n": "x"},
        {"n": {"type": "String"}},
        {"n": {"value": "x", "binary": ""}},
        {"n": {"type": "", "value": "x"}},
        {"n": {"type": "t" * (limits.MAX_MESSAGE_ATTRIBUTE_TYPE + 1), "value": "x"}},
        {"n": {"type": 1, "value": "x"}},
        {"n": {"type": "String", "value": 1}},
        {"n": {"type": "Binary", "binary": 1}},
        {"n": {"type": "String", "value": "x", "binary": ""}},
        {"n": {"type": "String", "text": "x"}},
    ],
)
def test_other_attributes_of_a_message_are_refused(attributes):
    with pytest.raises(InvalidRequest, match="/attributes"):
        checked(KEPT_MESSAGE, json.dumps({"body": "text", "attributes": attributes}))


@pytest.mark.parametrize("text", ["A", "AA=", "é", "AA==\n"])
def test_bytes_that_are_not_base64_are_refused(text):
    body = {"body": "", "attributes": {"n": {"type": "Binary", "binary": text}}}

    with pytest.raises(InvalidRequest, match=r"a binary attribute is not base64 \(.*\); write its bytes"):
        KEPT_MESSAGE.decode(body)
