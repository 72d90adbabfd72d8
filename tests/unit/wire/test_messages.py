"""The shape of a kept message."""

from __future__ import annotations

import json

from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.wire.messages import KEPT_MESSAGE


def test_a_message_is_read_as_it_was_written() -> None:
    attributes = {
        "kind": MessageAttribute("String", "import ☂"),
        "cents": MessageAttribute("Number.cents", "7"),
        "blob": MessageAttribute("Binary", b"\x00\xff"),
    }
    message = KeptMessage("{}", attributes, "group")

    body = json.loads(json.dumps(KEPT_MESSAGE.encode(message)))

    assert KEPT_MESSAGE.decode(body) == message
    assert body["attributes"]["blob"] == {"type": "Binary", "binary": "AP8="}


def test_what_a_message_does_not_have_is_left_out() -> None:
    assert KEPT_MESSAGE.encode(KeptMessage("text")) == {"body": "text"}
    assert KEPT_MESSAGE.decode({"body": "text"}) == KeptMessage("text")
