"""docs/how-to/deadlines.md says what the code does."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from fanin.cli.main import app
from fanin.errors import InvalidRequest
from fanin.testing import InMemoryService
from tests.docs import pages

TEXT = pages.text("how-to/deadlines.md")


def test_the_fields_that_it_names_are_in_the_event() -> None:
    # Given a batch that has timed out
    service = InMemoryService()
    with service.tracker.batch(deadline=timedelta(minutes=10)) as batch:
        batch.add(1)
    service.advance(timedelta(minutes=10))
    (event,) = service.events_of(batch.id)
    # Then the event has each field of the table
    table = TEXT.split("## What the event says")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert {"partial", "missing", "failures", "deadline"} <= named
    assert named <= set(event.detail)


@pytest.mark.parametrize(
    ("on_deadline", "closed", "state", "partial"),
    [
        ("time_out", True, "complete", False),
        ("complete", True, "complete", False),
        ("time_out", False, "timed_out", False),
        ("complete", False, "complete", True),
    ],
)
def test_a_batch_whose_items_are_all_done(on_deadline, closed, state, partial) -> None:
    # Given a batch with a deadline, all of whose items are done; its producer has closed it, or has not
    service = InMemoryService()
    opened = service.tracker.open(deadline=timedelta(minutes=10), on_deadline=on_deadline)
    service.tracker.ack(service.tracker.add(opened.batch_id, 3))
    if closed:
        service.tracker.close(opened.batch_id)
    # When its deadline comes
    service.advance(timedelta(minutes=10))
    # Then only a batch that nobody has closed is ended by it
    batch = service.tracker.status(opened.batch_id).batch
    assert (batch.state, batch.partial) == (state, partial)


def test_what_it_quotes_is_what_the_library_says() -> None:
    (quoted,) = re.findall(r"`InvalidRequest: (the deadline .+?)`", TEXT)
    with pytest.raises(InvalidRequest, match=quoted):
        InMemoryService().tracker.open(deadline=timedelta(days=31))


def test_its_options_exist() -> None:
    described = CliRunner().invoke(app, ["open", "--help"]).stdout
    (command,) = re.findall(r"fanin open (.+)\)", TEXT)
    options = re.findall(r"--[a-z-]+", command)
    assert options == ["--user-key", "--deadline", "--on-deadline"]
    assert all(option in described for option in options)
    assert "--all" in CliRunner().invoke(app, ["missing", "--help"]).stdout
