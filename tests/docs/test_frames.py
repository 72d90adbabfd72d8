"""docs/how-to/patterns/frames.md against the code."""

import re

from fanin import names
from fanin.client.frames import envelopes
from fanin.domain.frames import Hold
from tests.docs import pages

TEXT = pages.text("how-to/patterns/frames.md")


def test_it_has_every_answer_to_a_claim() -> None:
    answers = TEXT.split("A claim answers")[1].split("Only the leaf")[0]
    assert set(re.findall(r"`(\w+)` \(", answers)) == {hold.value for hold in Hold}


def test_it_has_every_message_of_the_reply_channel() -> None:
    table = TEXT.split("## Over SQS")[1].split("## Envelopes")[0]
    assert set(re.findall(r"^\| `([A-Z].+?)` \|", table, re.MULTILINE)) == {
        names.MESSAGE_COMPLETE_FRAME,
        names.MESSAGE_REPEAT_REQUESTED,
        names.MESSAGE_FRAME_ENDED,
    }


def test_it_has_the_layout_of_the_protobuf_envelope() -> None:
    layout = TEXT.split("```proto")[1].split("```")[0]
    fields = dict(re.findall(r"^  \w+ (\w+) = (\d);", layout, re.MULTILINE))
    ours = {
        "frame": envelopes._FRAME,
        "index": envelopes._INDEX,
        "type": envelopes._TYPE,
        "other_type": envelopes._OTHER_TYPE,
        "payload": envelopes._PAYLOAD,
    }
    assert {name: int(number) for name, number in fields.items()} == ours
    types = re.findall(r"^  ([A-Z_]+) = (\d);", layout, re.MULTILINE)
    assert [int(number) for _, number in types] == list(range(len(envelopes._TYPES)))
