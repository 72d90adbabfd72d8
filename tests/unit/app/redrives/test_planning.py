"""Planning a page: what is read, and how far."""

from __future__ import annotations

import pytest

from fanin.app.redrives.planning import LISTED, Destinations, Planning
from fanin.domain.redrives import OrdinalRange, Redrive
from tests.unit.app.redrives.conftest import Failed


def planning(world: Failed, page: int = 3) -> Planning:
    return Planning(world.ports, Destinations(world.ports), page=page)


def test_a_step_reads_a_bounded_number_of_pages(failed: Failed) -> None:
    batch = failed.failures(3 * LISTED + 3, reasons={3 * LISTED: "wanted"})
    first = planning(failed).after(batch, Redrive(errors=["wanted"])).page
    assert (first.plan, first.last) == ((), False)
    second = planning(failed).after(batch, Redrive(errors=["wanted"]), first).page
    assert [n for n, _ in second.plan] == [3 * LISTED]


def test_the_notes_of_a_plan_are_found_though_others_were_written_since(failed: Failed) -> None:
    # Given a plan of which every other item has a note
    batch = failed.failures(12)
    rows, _ = failed.ports.parts.failures(batch.batch_id, limit=100)
    failed.memory.parts._failures.clear()
    failed.ports.parts.put_failures(
        batch.batch_id, [row for row in rows if row.ordinal % 2], expires_at=2**40
    )
    page = planning(failed).after(batch, Redrive()).page
    assert [n for n, _ in page.plan] == [1, 3, 5]
    # When the others are written
    failed.ports.parts.put_failures(batch.batch_id, rows, expires_at=2**40)
    # Then those of the plan are still found
    assert sorted(planning(failed).notes(batch, page)) == [1, 3, 5]


@pytest.mark.parametrize("stop", [2, 3])
def test_nothing_is_read_beyond_the_last_range(failed: Failed, stop: int) -> None:
    batch = failed.failures(30)
    page = planning(failed).after(batch, Redrive(ranges=[OrdinalRange(0, stop)])).page
    assert page.last
    assert [n for n, _ in page.plan] == list(range(stop))


def test_pages_follow_each_other_to_the_end(failed: Failed) -> None:
    batch = failed.failures(7)
    found = [planning(failed).after(batch, Redrive()).page]
    while not found[-1].last:
        found.append(planning(failed).after(batch, Redrive(), found[-1]).page)
    assert [[n for n, _ in page.plan] for page in found] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [page.number for page in found] == [0, 1, 2]
