"""The record of a redrive."""

import json
from dataclasses import replace

import pytest

from fanin.app.ports.records import Record
from fanin.app.redrives.delivery import LISTED, Destinations, RedriveDelivery
from fanin.app.redrives.records import Counts, RedrivePage, RedriveRun, latest, prefix_of, read, run_of, save
from fanin.domain.redrives import (
    MAX_REFUSALS,
    NAMED,
    OTHER_REFUSALS,
    OrdinalRange,
    Redrive,
    RedriveState,
    Redriving,
)
from fanin.errors import BatchGone
from tests.unit.app.redrives.conftest import QUEUE, Failed

REQUEST = Redrive(("a",), (OrdinalRange(1, 2),), "https://sqs/x")
RUN = RedriveRun(
    7,
    REQUEST,
    3,
    99,
    "me",
    100,
    RedrivePage(4, "before", "after", True, ((1, 11), (2, 12))),
    1,
    8,
    False,
    Counts(5, 6, 1, (9,), {"gone": 2}),
)


def test_what_is_written_is_read():
    assert run_of(7, Record(RUN.name, RUN.value, 5, 0)) == replace(RUN, version=5)


def test_callers_see_what_became_of_it():
    assert RUN.shown == Redriving(
        name="95b09ec230bbf4ee/000003",
        retry_of=7,
        batch_id=8,
        state=RedriveState.RUNNING,
        items=5,
        already=6,
        not_kept=1,
        not_kept_items=(9,),
        refused={"gone": 2},
        errors=("a",),
        ranges=(OrdinalRange(1, 2),),
        queue_url="https://sqs/x",
        started_at=99,
    )
    assert replace(RUN, done=True).shown.state is RedriveState.FINISHED


def test_the_order_in_which_a_selection_is_written_makes_no_difference():
    one, two = (OrdinalRange(1, 2), OrdinalRange(3, 4))
    assert prefix_of(Redrive(["a", "b"], [one, two])) == prefix_of(Redrive(["b", "a", "a"], [two, one]))
    others = [Redrive(), Redrive(["a"]), Redrive([], [one]), Redrive(queue_url="https://sqs/x")]
    assert len({prefix_of(other) for other in others}) == 4


def test_the_latest_of_a_selection_is_found_among_others(failed):
    batch, _ = failed.batch()
    store = failed.ports.records
    assert latest(store, batch.batch_id, REQUEST) is None
    for generation in range(12):
        save(store, batch, replace(RUN, generation=generation))
    save(store, batch, replace(RUN, request=Redrive(), generation=40))
    found = latest(store, batch.batch_id, REQUEST)
    assert found is not None
    assert found.generation == 11


def test_a_redrive_of_a_batch_that_is_past_its_time_is_not_written(failed):
    # Given a redrive that is written
    batch, _ = failed.batch()
    store = failed.ports.records
    run = save(store, batch, replace(RUN, batch_id=batch.batch_id))
    # When the time of its batch is over
    failed.clock.advance(batch.expires_at * 1_000 - failed.clock.now())
    # Then who goes on with it learns so
    with pytest.raises(BatchGone, match=f"{RUN.name} of batch {batch.batch_id} is past"):
        save(store, batch, run)
    assert read(store, batch.batch_id, RUN.name) is None


def test_one_that_sent_nothing_is_used_again():
    assert RUN.next().generation == 4
    idle = replace(RUN, to=None, version=5)
    assert (idle.next().generation, idle.next().version) == (3, 5)


def test_counts_stay_small():
    one = Counts(1, 1, 1, (1,), {"known": 1})
    many = Counts(0, 0, 50, tuple(range(50)), {f"why {n}": 1 for n in range(50)})
    both = one.plus(many).plus(one)
    assert (both.items, both.already, both.not_kept) == (2, 2, 52)
    assert len(both.not_kept_items) == NAMED
    assert len(both.refused) == MAX_REFUSALS + 1
    assert both.refused["known"] == 2
    assert sum(both.refused.values()) == 52
    assert OTHER_REFUSALS in both.refused


def test_what_is_written_can_be_read_by_every_process():
    assert RUN.name == "redrive/95b09ec230bbf4ee/000003"
    assert json.loads(json.dumps(RUN.value)) == {
        "errors": ["a"],
        "ranges": [{"start": 1, "stop": 2}],
        "queue_url": "https://sqs/x",
        "generation": 3,
        "started_at": 99,
        "owner": "me",
        "until": 100,
        "page": {"number": 4, "before": "before", "after": "after", "last": True, "plan": [[1, 11], [2, 12]]},
        "part": 1,
        "to": 8,
        "done": False,
        "counts": {"items": 5, "already": 6, "not_kept": 1, "not_kept_items": [9], "refused": {"gone": 2}},
    }


# Where messages can be sent again.


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


def test_a_queue_is_looked_at_once_in_half_a_minute(failed, monkeypatch):
    # Given a queue that is there
    looks = looked_at(failed, monkeypatch)
    queues = Destinations(failed.ports)
    assert (queues.url(QUEUE), queues.refusal(QUEUE), len(looks)) == (QUEUE, None, 1)
    del failed.memory.channels.queues[QUEUE]
    # Then that is seen half a minute later
    assert queues.refusal(QUEUE) is None
    failed.clock.advance(30_000)
    assert QUEUE in (queues.refusal(QUEUE) or "")
    assert queues.url(QUEUE) is None


def test_only_the_thousand_queues_that_were_looked_at_last_are_remembered(failed, monkeypatch):
    # Given failures from a thousand queues, none of which is there
    looks = looked_at(failed, monkeypatch)
    queues = Destinations(failed.ports)
    names = [f"https://sqs/{n}" for n in range(1_001)]
    for name in [*names[:1_000], *names[:1_000]]:
        assert queues.url(name) is None
    assert looks == names[:1_000]
    queues.url(names[1_000])
    # Then the first is forgotten, and no other
    queues.url(names[1])
    assert looks == names
    queues.url(names[0])
    assert looks == [*names, names[0]]


def test_a_long_refusal_is_cut(failed):
    """Refusals are stored in the record of the redrive, up to twenty-one of them."""
    why = Destinations(failed.ports).refusal("https://sqs/" + "x" * 1_000) or ""
    assert why.startswith("there is no queue 'https://sqs/xxx")
    assert len(why) == 300


# Planning a page: what is read, and how far.


def planning(world: Failed, page: int = 3) -> RedriveDelivery:
    return RedriveDelivery(world.fresh(), page=page)


def test_a_step_reads_a_bounded_number_of_pages(failed):
    batch = failed.failures(3 * LISTED + 3, reasons={3 * LISTED: "wanted"})
    first = planning(failed).after(batch, Redrive(errors=["wanted"]))[0]
    assert (first.plan, first.last) == ((), False)
    second = planning(failed).after(batch, Redrive(errors=["wanted"]), first)[0]
    assert [n for n, _ in second.plan] == [3 * LISTED]


def test_the_notes_of_a_plan_are_found_though_others_were_written_since(failed):
    # Given a plan of which every other item has a note
    batch = failed.failures(12)
    rows, _ = failed.ports.parts.failures(batch.batch_id, limit=100)
    failed.memory.parts._partitions.clear()
    failed.ports.parts.put_failures(
        batch.batch_id, [row for row in rows if row.ordinal % 2], expires_at=2**40
    )
    page = planning(failed).after(batch, Redrive())[0]
    assert [n for n, _ in page.plan] == [1, 3, 5]
    failed.ports.parts.put_failures(batch.batch_id, rows, expires_at=2**40)
    # Then those of the plan are still found
    assert sorted(planning(failed).notes(batch, page)) == [1, 3, 5]


@pytest.mark.parametrize("stop", [2, 3])
def test_nothing_is_read_beyond_the_last_range(failed, stop):
    batch = failed.failures(30)
    page = planning(failed).after(batch, Redrive(ranges=[OrdinalRange(0, stop)]))[0]
    assert page.last
    assert [n for n, _ in page.plan] == list(range(stop))


def test_pages_follow_each_other_to_the_end(failed):
    batch = failed.failures(7)
    found = [planning(failed).after(batch, Redrive())[0]]
    while not found[-1].last:
        found.append(planning(failed).after(batch, Redrive(), found[-1])[0])
    assert [[n for n, _ in page.plan] for page in found] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [page.number for page in found] == [0, 1, 2]
