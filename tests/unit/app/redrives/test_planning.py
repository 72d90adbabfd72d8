"""Planning a page: what is read, and how far."""

from __future__ import annotations

import pytest

from fanin.app.redrives.planning import LISTED, Destinations, Planning
from fanin.domain.redrives import OrdinalRange, Redrive
from tests.unit.app.redrives.conftest import QUEUE, Failed


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


def looked_at(failed: Failed, monkeypatch) -> list[str]:
    """The queues that are looked at from now on."""
    looks: list[str] = []
    resolve = failed.memory.channels.resolve

    def look(channel: str, *, new: bool, again: bool) -> str:
        assert not new  # a queue that messages came from is no new one, so a refusal is not doubted
        looks.append(channel)
        return resolve(channel, new=new, again=again)

    monkeypatch.setattr(failed.memory.channels, "resolve", look)
    return looks


def test_a_queue_is_looked_at_once_a_minute(failed: Failed, monkeypatch) -> None:
    # Given a queue that is there
    looks = looked_at(failed, monkeypatch)
    queues = Destinations(failed.ports)
    assert (queues.url(QUEUE), queues.refusal(QUEUE), len(looks)) == (QUEUE, None, 1)
    # When it is gone
    del failed.memory.channels.queues[QUEUE]
    # Then that is seen a minute later
    assert queues.refusal(QUEUE) is None
    failed.clock.advance(60_000)
    assert QUEUE in (queues.refusal(QUEUE) or "")
    assert queues.url(QUEUE) is None


def test_only_the_thousand_queues_that_were_looked_at_last_are_remembered(
    failed: Failed, monkeypatch
) -> None:
    # Given failures from a thousand queues, none of which is there
    looks = looked_at(failed, monkeypatch)
    queues = Destinations(failed.ports)
    names = [f"https://sqs/{n}" for n in range(1_001)]
    for name in [*names[:1_000], *names[:1_000]]:
        assert queues.url(name) is None
    assert looks == names[:1_000]
    # When there is one more
    queues.url(names[1_000])
    # Then the first is forgotten, and no other
    queues.url(names[1])
    assert looks == names
    queues.url(names[0])
    assert looks == [*names, names[0]]


def test_a_long_refusal_is_cut(failed: Failed) -> None:
    """Refusals are stored in the record of the redrive, up to twenty-one of them."""
    why = Destinations(failed.ports).refusal("https://sqs/" + "x" * 1_000) or ""
    assert why.startswith("there is no queue 'https://sqs/xxx")
    assert len(why) == 300
