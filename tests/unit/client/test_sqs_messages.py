"""What every queue takes as a message."""

from __future__ import annotations

import pytest

from fanin.client.sqs_messages import check_body
from fanin.errors import InvalidRequest, RequestTooLarge


@pytest.mark.parametrize("body", ["\t\n\r ~", "\ud7ff\ue000\ufffd", "\U00010000\U0010ffff", "x" * 100])
def test_a_body_that_every_queue_takes(body: str) -> None:
    check_body(body, 100)


@pytest.mark.parametrize("bad", ["\x00", "\x08", "\x0b", "\x1f", "\ud800", "\ufffe", "\uffff"])
def test_a_body_with_a_character_outside_of_xml_is_refused(bad: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"U\+{ord(bad):04X} at 2, which no SQS message"):
        check_body(f"ab{bad}c", 100)


def test_a_body_is_measured_in_utf_8() -> None:
    check_body("é" * 50, 100)
    with pytest.raises(RequestTooLarge, match="has 102 bytes, but a queue takes 100"):
        check_body("é" * 51, 100)
