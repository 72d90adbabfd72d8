from __future__ import annotations

from fanin.console.live.kept import Kept


def test_what_is_kept_is_made_once() -> None:
    kept = Kept()
    assert kept.get("a", list) is kept.get("a", list)
    assert kept.get("a", list) is not kept.get("b", list)


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    # Given room for two
    kept = Kept(2)
    first, second = kept.get(1, list), kept.get(2, list)
    # When the first is used, and a third comes
    kept.get(1, list)
    kept.get(3, list)
    # Then the second is gone
    assert len(kept) == 2
    assert kept.get(1, list) is first
    assert kept.get(2, list) is not second
