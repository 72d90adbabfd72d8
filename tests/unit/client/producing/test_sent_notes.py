"""What a producer notes of the blocks that it has sent."""

from __future__ import annotations

import pytest

from fanin.client.producing.sent_notes import SentNotes
from fanin.domain import ids
from fanin.domain.diagnosis import SentItems

QUEUE = "https://sqs/1/work"


def prefix(first: int, size: int) -> str:
    return ids.issue(7, first, size, b"s" * 16).prefix


REFUSED = f"{prefix(100, 10)}:4"


@pytest.mark.parametrize(
    ("blocks", "answers", "noted"),
    [
        pytest.param([(0, 15, 15)], [10, 4], [], id="a block that is not answered whole is not noted"),
        pytest.param([(0, 15, 15)], [10, 4, 1], [(0, 15)], id="a block is noted once it is"),
        pytest.param(
            [(0, 10, 10), (10, 10, 10)], [10, 10], [(0, 10), (0, 20)], id="blocks in a row extend one note"
        ),
        pytest.param(
            [(0, 10, 10), (50, 10, 10)],
            [20],
            [(0, 10), (50, 60)],
            id="a gap where another producer added begins a new one",
        ),
        pytest.param(
            [(0, 10, 0), (10, 10, 3)], [3], [(0, 10), (0, 20)], id="items that were done before count as sent"
        ),
        pytest.param(
            [(100, 10, 10)], [10], [(100, 104), (105, 110)], id="a message that was refused was not sent"
        ),
    ],
)
def test_blocks_are_noted(
    blocks: list[tuple[int, int, int]], answers: list[int], noted: list[tuple[int, int]]
) -> None:
    # Given blocks: the first ordinal, items, and messages that are sent for them
    found: list[tuple[int, SentItems]] = []
    notes = SentNotes(7, QUEUE, lambda batch_id, sent: found.append((batch_id, sent)))
    for first, size, messages in blocks:
        notes.begin(prefix(first, size), messages)
    # When the queue answers for so many messages, one after the other
    for messages in answers:
        notes.answered(messages, {REFUSED} if blocks[0][0] == 100 else {})
    # Then
    assert found == [(7, SentItems(QUEUE, start, stop)) for start, stop in noted]
