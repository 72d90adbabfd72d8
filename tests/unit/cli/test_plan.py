"""fanin plan."""

from __future__ import annotations

import pytest

from fanin.domain.costs import Prices


def test_prices_can_be_given(run):
    ours = run("plan", 1_000_000, "--json").document
    theirs = run("plan", 1_000_000, "--write-price", 6.25, "--json").document
    assert ours["ways"][0]["dollars"] == pytest.approx(0.635, abs=0.001)
    assert theirs["ways"][2]["dollars"] == pytest.approx(10 * ours["ways"][2]["dollars"])
    assert {way["way"] for way in ours["ways"]} >= {"counter", "row per message", "Step Functions"}


def test_people_see_the_prices_and_since_when(run):
    shown = run("plan", 1_000_000).stdout
    assert Prices.since in shown
    assert Prices.region in shown
    assert "$25.00" in shown
    assert "your prices" in run("plan", 10, "--read-price", 1).stdout


def test_ranges_of_a_batch_with_totals_are_said_to_take_a_write_for_64_items(run):
    way = run("plan", 6_400_000, "--json").document["ways"][-1]
    assert 100_000 < way["writes"] < 104_000
    assert "a write for 64 items" in " ".join(run("plan", 6_400_000).stdout.split())


@pytest.mark.parametrize("args", [("0",), ("-5",), ("10", "--together", "65"), ("ten",)])
def test_nonsense_is_wrong_usage(run, args):
    assert run("plan", *args).exit_code == 2
