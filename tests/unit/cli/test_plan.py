"""What the plan counts, against the ledger itself."""

from __future__ import annotations

import pytest

from fanin import Tracker
from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.cli.prices import BLOCK, Prices, costs, parents


def written(memory):
    return sum(memory.accesses.writes.values())


@pytest.mark.parametrize("items", [1, 64, 65, 5_000, 20_000])
@pytest.mark.parametrize("together", [1, 64])
def test_the_plan_is_no_lower_than_what_the_ledger_writes(items, together):
    # Given
    memory = Memory()
    tracker = Tracker(Services(memory.ports()))
    # When
    with tracker.batch() as batch:
        groups = [batch.add(min(BLOCK, items - start), key=str(start)) for start in range(0, items, BLOCK)]
    ids = [item for group in groups for item in group]
    for start in range(0, items, together):
        tracker.ack(ids[start : start + together])
    # Then
    planned = costs(items, together=together)[0].writes
    assert written(memory) <= planned <= written(memory) + 32


@pytest.mark.parametrize("items", [1, 64, 5_000, 10**6, 10**9])
def test_the_plan_of_one_range_is_no_lower_than_what_the_ledger_writes(items):
    memory = Memory()
    tracker = Tracker(Services(memory.ports()))
    with tracker.batch() as batch:
        group = batch.add(items)
    tracker.ack(group)
    planned = costs(items)[1].writes
    assert written(memory) <= planned <= written(memory) + 32


def test_parents_are_one_63rd_of_the_words():
    assert parents(64**4) == 64**3 + 64**2 + 64
    assert parents(64) == 0


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


@pytest.mark.parametrize("args", [("0",), ("-5",), ("10", "--together", "65"), ("ten",)])
def test_nonsense_is_wrong_usage(run, args):
    assert run("plan", *args).exit_code == 2
