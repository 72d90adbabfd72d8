"""docs/how-to/patterns/buffers.md against the code."""

from __future__ import annotations

import re

from fanin import names
from fanin.adapters import queues
from fanin.app.buffers import slots as buffer_slots
from fanin.domain import limits
from tests.docs import pages

TEXT = pages.text("how-to/patterns/buffers.md")


def test_its_examples_run(capsys) -> None:
    first, poison = pages.code("how-to/patterns/buffers.md")
    for example in (first, poison):
        exec(compile(example, "docs/how-to/patterns/buffers.md", "exec"), {})  # noqa: S102
    assert "3 items pending of at most 3" in capsys.readouterr().out


def test_it_has_the_limits() -> None:
    table = TEXT.split("## Limits")[1]
    assert f"| limit of a buffer | {limits.MAX_LIMIT:,} |" in table
    assert f"| payloads of a put | {limits.MAX_WORK}, together {limits.MAX_PAYLOAD // 1024} KB |" in table
    assert f"| work of a take | {limits.MAX_WORK} |" in table


def test_it_has_the_times() -> None:
    assert buffer_slots.MARGIN_MS == 15 * 60_000
    assert "a quarter of an hour" in TEXT
    assert buffer_slots.SEND_MS == 5 * 60_000
    assert "over five minutes" in TEXT
    assert f"after {(buffer_slots.LIFETIME - buffer_slots.RENEWAL) // 86_400} days" in TEXT


def test_it_says_when_a_message_is_given_up() -> None:
    assert queues.MAX_RECEIVES == 10
    assert "dies, ten times" in TEXT


def test_it_has_every_metric() -> None:
    told = set(re.findall(r"`(Buffers?[A-Z]\w+)`", TEXT))
    assert told == {
        names.METRIC_BUFFER_DEPTH,
        names.METRIC_BUFFER_REJECTS,
        names.METRIC_BUFFER_WAIT,
        names.METRIC_BUFFERS_UNREADABLE,
    }
