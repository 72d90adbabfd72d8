from __future__ import annotations

from fanin.console.live.cache import Cache


def test_a_value_is_made_once() -> None:
    cache = Cache()
    assert cache.get("a", list) is cache.get("a", list)
    assert cache.get("a", list) is not cache.get("b", list)


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    # Given room for two
    cache = Cache(2)
    first, second = cache.get(1, list), cache.get(2, list)
    # When the first is used, and a third comes
    cache.get(1, list)
    cache.get(3, list)
    # Then the second is gone
    assert len(cache) == 2
    assert cache.get(1, list) is first
    assert cache.get(2, list) is not second
