"""Writers that share words: who gets which items, and what their contention costs."""

from __future__ import annotations

import pytest

from bench import writers
from bench.world import World, span


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(writers, "ITEMS", 2_048)


@pytest.fixture
def group():
    return span(World().batch(2_048), 0, 2_048)


def test_the_shares_of_all_writers_are_all_items_each_once(group):
    dealt = [item for number in range(writers.WRITERS) for item in writers.share(group, number)]
    assert sorted(dealt) == sorted(group)


def test_duplicates_are_the_neighbours(group):
    mine, with_duplicates = writers.share(group, 3), writers._share_and_duplicates(group, 3)
    extra = set(with_duplicates) - set(mine)
    assert set(mine) < set(with_duplicates)
    assert extra <= set(writers.share(group, 4))
    assert all(int(item.rsplit(":", 1)[1]) % writers.TWICE == 0 for item in extra)


def test_in_virtual_time_only_duplicates_make_writes_fail():
    (figure,) = writers.interleaved()
    assert figure.measured == 0
    assert "41 true duplicates" in figure.note


def test_threads_get_in_nobodys_way():
    writes, reads, refused = writers.threads()
    assert refused.measured == 0
    assert writes.measured < 1.03
    assert reads.measured < 0.1


def test_an_error_of_a_thread_is_raised():
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        writers.in_threads([fail, lambda: None])
