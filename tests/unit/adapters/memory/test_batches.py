"""What the batches in memory show beyond the port: the stream of changes, and when the reaper has work."""

from dataclasses import replace

from fanin.adapters.memory import Memory
from fanin.app.ports.batches import Activity
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import LIVE, Batch, State

BATCH = Batch(
    batch_id=8,
    salt=bytes(16),
    created_at=0,
    touched_at=0,
    expires_at=1_800_000_000,
    open_idle_ttl=7200,
    closed_idle_ttl=7200,
)


def test_changes_of_batches_are_kept_in_order() -> None:
    memory = Memory()
    memory.batches.create(BATCH)
    closed, _ = memory.batches.close(8, now=1)
    memory.batches.close(8, now=2)
    ended, _ = memory.batches.end(8, State.COMPLETE, now=3, sources=LIVE)
    assert ended
    memory.batches.expire(8, now=4_000)

    gone = replace(ended, expires_at=4)
    assert memory.batches.changes == [(None, BATCH), (BATCH, closed), (closed, ended), (ended, gone)]


def batch(batch_id: int, **values: object) -> Batch:
    return replace(BATCH, batch_id=batch_id, **values)


def test_a_refused_write_is_counted_and_is_no_change() -> None:
    memory = Memory()
    memory.batches.create(BATCH)
    memory.batches.create(replace(BATCH, salt=b"1" * 16))
    memory.batches.expire(8, now=0)
    memory.batches.rebound(8, items=7, pending=0)
    memory.batches.allocate_once(replace(BATCH, items=7), 4, IdempotencyKey.of("a"), activity=Activity(0, 0))

    assert memory.batches.changes == [(None, BATCH)]
    assert memory.accesses.refused == {
        "batches.create": 1,
        "batches.expire": 1,
        "batches.rebound": 1,
        "batches.allocate_once": 1,
    }


def test_the_key_of_the_index_is_what_activity_made_it_not_what_the_row_would_say() -> None:
    # Given a batch whose activity set another time than its row computes
    memory = Memory()
    memory.batches.create(BATCH)
    assert memory.batches.next_due() == BATCH.due_at

    memory.batches.close(8, now=1, activity=Activity(0, 50))
    assert memory.batches.next_due() == 50

    # When it moves without activity, then the time stays
    memory.batches.rebound(8, items=0, pending=3)
    assert memory.batches.next_due() == 50


def test_an_ended_batch_is_never_due() -> None:
    memory = Memory()
    assert memory.batches.next_due() is None
    memory.batches.create(batch(1, deadline=1_000))
    memory.batches.create(batch(2, deadline=9_000))
    assert memory.batches.next_due() == 61_000

    memory.batches.end(1, State.CANCELLED, now=3, sources=LIVE)

    assert memory.batches.next_due() == 69_000


def test_a_page_costs_one_query_and_the_rows_it_shows() -> None:
    memory = Memory()
    for batch_id in range(5):
        memory.batches.create(batch(batch_id))

    page = memory.batches.page(State.OPEN, limit=2)

    assert [row.batch_id for row in page.batches] == [0, 1]
    assert memory.accesses.reads == {"batches.page": 1, "batches.read": 2}
