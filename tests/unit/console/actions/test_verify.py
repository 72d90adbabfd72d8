"""Verifying a batch, as a person at the console sees it."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fanin.console.actions.action import PAGES
from fanin.console.actions.batches import Verify
from fanin.domain.batch import Mode
from fanin.domain.reports import Verdict
from fanin.errors import Throttled
from tests.unit.console.pressing import Person, buttons_of, form_of, text_of


@dataclass
class Pages:
    """A ledger whose ``verify`` answers with given verdicts."""

    ledger: Any
    verdicts: list[Verdict | Exception]
    seen: list[tuple[str | None, bool]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)

    def verify(self, _: int, *, cursor: str | None = None, repair: bool = True) -> Verdict:
        self.seen.append((cursor, repair))
        found = self.verdicts.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


class With:
    """The services with another ledger."""

    def __init__(self, services: Any, ledger: Any) -> None:
        self.ledger = ledger
        self._services = services

    def __getattr__(self, name: str) -> Any:
        return getattr(self._services, name)


def path(batch_id: int) -> str:
    return f"/batches/{batch_id}/actions/verify"


def test_it_says_what_it_reads_and_that_nothing_disagrees(person, makes):
    batch, _ = makes.batch(500, done=312)
    asked = person.look(path(batch.batch_id))
    assert "Only what lies above the 188 items not done is read" in text_of(asked)
    assert buttons_of(asked) == ["Verify 500 items"]
    done = person.press(path(batch.batch_id), repair="yes")
    assert "Nothing disagrees. All items were looked at." in text_of(done)
    assert "Not done, as counted 188" in text_of(done)


def test_disagreements_are_shown_and_repaired_only_if_it_is_asked(service, person, makes):
    # Given a verdict with hostile words, more than a page shows
    batch, _ = makes.batch(500)
    found = tuple(f"word <b>{number}</b>" for number in range(60))
    ledger = Pages(
        makes.ledger, [Verdict(batch, 7, found, repaired=False), Verdict(batch, 7, found, repaired=True)]
    )
    person = Person(service, With(service.services, ledger))
    # When it is asked without the tick, and with it
    only = person.press(path(batch.batch_id))
    both = person.press(path(batch.batch_id), repair="yes")
    assert ledger.seen == [(None, False), (None, True)]
    assert "60 disagreements found and not repaired." in text_of(only)
    assert "word <b>0</b>" in text_of(only)
    assert "<b>" not in only.text
    assert "and 10 more" in text_of(only)
    assert "60 disagreements found and repaired." in text_of(both)


def test_it_goes_through_a_bounded_number_of_pages_and_then_says_how_far(service, makes):
    # Given more pages than one press goes through
    batch, _ = makes.batch(500)
    pages = [Verdict(batch, 100, (), cursor=str(number)) for number in range(PAGES + 1)]
    ledger = Pages(makes.ledger, [*pages, Verdict(batch, 50)])
    person = Person(service, With(service.services, ledger))
    first = person.press(path(batch.batch_id), repair="yes")
    assert len(ledger.seen) == PAGES
    assert "2,000 items that are not done were looked at so far." in text_of(first)
    rest = person.send(form_of(first))
    # Then it begins where it stopped, and repairs as before
    assert ledger.seen[PAGES:] == [("19", True), ("20", True)]
    assert "Nothing disagrees. All items were looked at." in text_of(rest)


def test_what_was_repaired_before_an_outage_is_said(service, makes):
    batch, _ = makes.batch(500)
    page = Verdict(batch, 100, ("word",), repaired=True, cursor="c")
    ledger = Pages(makes.ledger, [page, Throttled("busy")])
    done = Person(service, With(service.services, ledger)).press(path(batch.batch_id), repair="yes")
    assert (
        "1 disagreement found and repaired. 100 items that are not done were looked at so far. Then: busy"
        in (text_of(done))
    )


def test_a_first_page_that_fails_fails(service, makes):
    batch, _ = makes.batch(500)
    ledger = Pages(makes.ledger, [Throttled("busy")])
    done = Person(service, With(service.services, ledger)).press(path(batch.batch_id))
    assert done.status_code == 503
    assert "Busy. It is safe to press again: nothing is done twice." in text_of(done)


@pytest.mark.parametrize("mode", Mode)
def test_an_estimated_batch_has_nothing_to_verify(makes, mode):
    batch, _ = makes.batch(1)
    assert bool(Verify().why_not(replace(batch, mode=mode))) is (mode is Mode.ESTIMATED)
