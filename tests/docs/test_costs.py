"""The page about costs has the figures of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fanin.cli.main import app
from fanin.domain.costs import costs
from fanin.domain.planning import idle, waiting_taker
from fanin.domain.prices import DEFAULT
from fanin.domain.usage import Order

EXPLANATION = Path(__file__).resolve().parents[2] / "docs" / "explanation"
PAGE = (EXPLANATION / "costs.md").read_text()
COMPARED = (EXPLANATION / "comparison.md").read_text()
SERVICES = ("DynamoDB", "API", "Lambda", "SQS", "logs")


def test_the_bill_of_each_way():
    rows = re.findall(r"^\| (.+), (scattered|neighbours) \| (.+) \|$", PAGE, re.MULTILINE)
    assert len(rows) >= 10
    for way, order, figures in rows:
        (cost,) = [one for one in costs(10**6, Order(order)) if one.way == way]
        bill = cost.usage.bill(DEFAULT)
        expected = [*(bill[service] for service in SERVICES), cost.dollars(DEFAULT)]
        assert figures.split(" | ") == [f"{amount:.3f}" for amount in expected], way


def test_every_way_is_in_the_table():
    assert all(f"| {cost.way}, scattered |" in PAGE for cost in costs(10**6))


@pytest.mark.parametrize("rate", [10, 10_000])
def test_the_ack_queue_at_other_rates(rate):
    (cost,) = [one for one in costs(10**6, rate=rate) if one.way.startswith("ack queue")]
    assert f"${cost.dollars(DEFAULT):.2f} at {rate:,}" in PAGE


def test_an_idle_month():
    month = idle()
    assert f"| metrics of alarms | {month.alarm_metrics} | {month.alarm_metrics * 0.1:.2f} |" in PAGE
    assert f"| {month.queue_requests:,.0f} | {month.bill(DEFAULT)['SQS']:.2f} |" in PAGE
    assert f"| runs of reaper and registrar | {month.invocations:,.0f} |" in PAGE
    another = idle(polled_queues=1).bill(DEFAULT)["SQS"]
    assert f"Each queue of yours with a consumer on Lambda adds ${another:.2f} a month" in PAGE


def test_a_taker_that_waits():
    for in_the_service in (True, False):
        assert f"| {waiting_taker(in_the_service=in_the_service).dollars(DEFAULT):.2f} |" in PAGE


def test_the_ways_compared():
    scattered, neighbours = (
        json.loads(CliRunner().invoke(app, ["plan", "1e6", "--order", order, "--json"]).stdout)
        for order in ("scattered", "neighbours")
    )
    planned = [
        (one["way"], f"{one['writes']:,}", f"{one['dollars']:.2f}", f"{other['dollars']:.2f}")
        for kind in ("ways", "alternatives")
        for one, other in zip(scattered[kind], neighbours[kind], strict=True)
    ]
    table = PAGE.split("## The ways compared")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|", table, re.MULTILINE)
    assert rows == planned


def test_the_comparison_has_the_dollars_of_the_plan():
    plan = json.loads(CliRunner().invoke(app, ["plan", "1e6", "--json"]).stdout)
    ours = [one["dollars"] for one in plan["ways"]]
    others = {one["way"]: f"{one['dollars']:.2f}" for one in plan["alternatives"]}
    told = dict(re.findall(r"^\| ([^|]+?) \| [^|]+ \| ([\d.]+(?: to [\d.]+)?) \|", COMPARED, re.MULTILINE))
    assert told.pop("**fanin**") == f"{min(ours):.2f} to {max(ours):.2f}"
    assert len(told) == 6
    for name, dollars in told.items():
        (way,) = [way for way in others if name.replace(" children", "").startswith(way)]
        assert dollars == others[way], name
