"""The explanations about guarantees and costs have the promises and figures of the code."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fanin import errors
from fanin.cli.main import app
from fanin.domain.costs import ACCESS_LINE, BASE_MS, FAST_GB, PER_LINE, Order, Usage, costs
from fanin.domain.planning import MONTH_SECONDS, idle
from fanin.domain.prices import DEFAULT
from fanin.errors import STATUS, FaninError
from fanin.testing import InMemoryService
from tests.docs import pages

TEXT = pages.text("explanation/guarantees.md")
AFTER = TEXT.split("## After an error")[1].split("\n## ")[0]


def test_it_says_of_every_error_that_leaves_a_doubt_what_to_do():
    told = set(re.findall(r"`([A-Z]\w+)`", AFTER))
    assert told >= {"OutcomeUnknown", "PartlyMarked", "Throttled", "ServiceUnavailable"}
    assert all(issubclass(getattr(errors, name), FaninError) for name in told)


def test_it_says_which_errors_a_repeat_may_help():
    (sentence,) = re.findall(
        r"^`retryable` is true for (.+), and false for `OutcomeUnknown`", AFTER, re.MULTILINE
    )
    retryable = {error.__name__ for error in STATUS if error.retryable}
    assert set(re.findall(r"`(\w+)`", sentence)) == retryable


def test_a_producer_that_died_goes_on_as_it_says():
    # Given rows of which the first run reads a part
    (example,) = pages.code("explanation/guarantees.md")
    service, runs = InMemoryService(), []

    def rows():
        runs.append("begun")
        yield from ("a", "b")
        if len(runs) == 1:
            raise OSError("the producer dies")
        yield "c"

    scope = {"tracker": service.tracker, "queue_url": service.queue("rows"), "rows": rows}
    # When it runs twice
    for _ in range(2):
        try:
            exec(compile(example, "docs/explanation/guarantees.md", "exec"), scope)
        except OSError:
            continue
    # Then there is one batch of three items
    (batch,) = service.tracker.iter_batches("closed")
    assert (len(runs), batch.items) == (2, 3)
    assert list(service.tracker.iter_batches("open")) == []


EXPLANATION = Path(__file__).resolve().parents[2] / "docs" / "explanation"
PAGE = (EXPLANATION / "costs.md").read_text()
COMPARED = (EXPLANATION / "comparison.md").read_text()
SERVICES = ("DynamoDB", "API", "Lambda", "SQS", "logs")


TAKE_SECONDS = 20
"""For which a take waits for work by default."""
POLL_SECONDS = 2.5
"""Between two requests of a taker that has found nothing for long: pauses of up to 5 seconds, on average."""


def waiting_taker(*, in_the_service: bool = False) -> Usage:
    """What a taker over HTTPS consumes that waits for work for a month, in which there is none.

    Args:
        in_the_service: whether each of its requests waits in a function, as ``POST .../take`` with ``wait``
            does, instead of asking again, as the library does.
    """
    takes = MONTH_SECONDS / TAKE_SECONDS
    requests = takes if in_the_service else MONTH_SECONDS / POLL_SECONDS
    seconds = TAKE_SECONDS if in_the_service else 2 * BASE_MS / 1000
    return Usage(
        api_requests=requests,
        invocations=requests,
        gb_seconds=requests * FAST_GB * seconds,
        queue_requests=requests * (2 if in_the_service else 1),
        log_bytes=requests * (ACCESS_LINE + PER_LINE),
        writes=takes * (2 if in_the_service else 1),
    )


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
    waiting, polling = (waiting_taker(in_the_service=here) for here in (True, False))
    assert waiting.bill(DEFAULT)["Lambda"] > 0.95 * waiting.dollars(DEFAULT)
    assert polling.dollars(DEFAULT) < waiting.dollars(DEFAULT) / 20
    assert all(f"| {one.dollars(DEFAULT):.2f} |" in PAGE for one in (waiting, polling))


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
