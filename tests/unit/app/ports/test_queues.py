from __future__ import annotations

import pytest

from fanin.app.ports.queues import Figures, QueueReport


@pytest.mark.parametrize(
    ("counts", "empty"), [((0, 0, 0), True), ((1, 0, 0), False), ((0, 1, 0), False), ((0, 0, 1), False)]
)
def test_a_queue_is_empty_if_nothing_is_visible_in_flight_or_delayed(
    counts: tuple[int, int, int], empty: bool
) -> None:
    assert Figures(*counts, retention=60).empty is empty


def test_a_queue_is_named_after_the_end_of_its_url() -> None:
    assert QueueReport("https://sqs.eu-west-1.amazonaws.com/1/work").name == "work"
