from __future__ import annotations

from fanin.client.producing.sent_notes import SentNotes
from fanin.domain import ids
from fanin.domain.diagnosis import SentItems

SALT = b"s" * 16


class Noted:
    def __init__(self) -> None:
        self.sent: list[tuple[int, int]] = []
        self.notes = SentNotes(7, "https://sqs/1/work", self._note)

    def _note(self, batch_id: int, sent: SentItems) -> None:
        assert (batch_id, sent.queue) == (7, "https://sqs/1/work")
        self.sent.append((sent.start, sent.stop))

    def begin(self, first: int, size: int, messages: int | None = None) -> None:
        self.notes.begin(_prefix(first, size), size if messages is None else messages)


def _prefix(first: int, size: int) -> str:
    return ids.issue(7, first, size, SALT).prefix


def test_a_block_is_noted_once_all_of_it_was_answered() -> None:
    noted = Noted()
    noted.begin(0, 15)

    noted.notes.answered(10, {})
    noted.notes.answered(4, {})
    assert noted.sent == []
    noted.notes.answered(1, {})

    assert noted.sent == [(0, 15)]


def test_blocks_that_follow_each_other_extend_one_note() -> None:
    noted = Noted()
    noted.begin(0, 10)
    noted.begin(10, 10)

    noted.notes.answered(10, {})
    noted.notes.answered(10, {})

    assert noted.sent == [(0, 10), (0, 20)]


def test_a_gap_where_another_producer_added_begins_a_new_one() -> None:
    noted = Noted()
    noted.begin(0, 10)
    noted.begin(50, 10)

    noted.notes.answered(20, {})

    assert noted.sent == [(0, 10), (50, 60)]


def test_items_that_were_done_before_count_as_sent_then() -> None:
    noted = Noted()
    noted.begin(0, 10, messages=0)
    noted.begin(10, 10, messages=3)

    noted.notes.answered(3, {})

    assert noted.sent == [(0, 10), (0, 20)]


def test_a_message_that_was_refused_was_not_sent() -> None:
    noted = Noted()
    noted.begin(100, 10)

    noted.notes.answered(10, {f"{_prefix(100, 10)}:4": "too large"})

    assert noted.sent == [(100, 104), (105, 110)]
