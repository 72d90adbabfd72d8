"""docs/how-to/deadlines.md says what the code does."""

import re
from datetime import timedelta

import pytest

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


def test_what_it_quotes_is_what_the_library_says() -> None:
    (quoted,) = re.findall(r"`InvalidRequest: (the deadline .+?)`", TEXT)
    with pytest.raises(InvalidRequest, match=quoted):
        InMemoryService().tracker.open(deadline=timedelta(days=31))
