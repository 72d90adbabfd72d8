"""A buffer's words."""

from __future__ import annotations

from fanin.domain.buffer import Outcome


def test_the_answer_to_a_put_has_these_words() -> None:
    assert [*Outcome] == ["waiting", "ready"]
