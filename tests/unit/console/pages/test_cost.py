from __future__ import annotations

import pytest

from fanin import Failure
from fanin.console.rendering import dollars
from fanin.domain.costs import spent
from fanin.domain.prices import DEFAULT
from tests.unit.console.looking import text_of


def test_the_cost_follows_from_what_the_row_says(service, browse) -> None:
    # Given a batch of which 1,000 items are done, 10 of them failed
    with service.tracker.batch() as batch:
        group = list(batch.add(5_000))
    service.tracker.ack(group[10:1_000])
    service.tracker.fail([Failure(item, "x") for item in group[:10]])
    # Then its page has the figures of that arithmetic
    shown = text_of(browse().get(f"/batches/{batch.id}/cost").text)
    for way, whole in zip(spent(5_000, 1_000, 10), spent(5_000, 5_000, 10), strict=True):
        so_far, in_all = (dollars(one.dollars(DEFAULT)) for one in (way, whole))
        calls = f"{int(way.usage.api_requests):,} {int(way.usage.queue_requests):,}"
        assert f"{way.way} {way.writes:,} {calls} {so_far} {in_all}" in shown.replace("&lt;", "<")


def test_it_says_that_it_is_an_estimate_and_what_it_leaves_out(service, browse) -> None:
    shown = text_of(browse().get(f"/batches/{service.tracker.open().batch_id}/cost").text)
    assert "An estimate" in shown
    assert "What it leaves out" in shown
    assert "List prices of us-east-1, 2026-08-15" in shown


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "$0.0000"), (0.00001, "< $0.0001"), (0.0625, "$0.0625"), (1, "$1.00"), (1234.5, "$1,234.50")],
)
def test_amounts_are_written_for_people(amount, text) -> None:
    assert dollars(amount) == text
