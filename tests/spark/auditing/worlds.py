"""Tables of sound batches, and of batches of which each has one thing wrong, with what should be found."""

from collections.abc import Iterable
from typing import NamedTuple

from fanin.adapters.dynamodb.rows import SUMS
from fanin.domain.batch import Batch, Mode, OnDeadline, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.marks import Count, Done, Failure
from fanin.domain.totals import MAX_CHILD_SUM, MAX_SUM
from tests.spark.tables import FULL, Tables, word_row

TIMES = (
    *("created_at", "touched_at", "closed_at", "ended_at", "expires_at"),
    *("open_idle_ttl", "closed_idle_ttl", "stall_after"),
)
"""Attributes of a batch's row that are times, or spans of time."""

Found = tuple[int | None, str | None, str, bool, bool]


class World(NamedTuple):
    """Tables, and what should be found in them.

    Attributes:
        missing: of all exact batches that nobody has spoilt, by the ledger.
    """

    tables: Tables
    expected: set[Found]
    missing: dict[int, list[tuple[int, int]]]


def wrong(batch: Batch | None, kind: str, word: str | None = None) -> Found:
    return (batch.batch_id if batch else None, word, kind, False, True)


def sound(tables: Tables) -> list[Batch]:
    """Batches of every kind and state, all as the ledger left them."""
    made = []
    for items in (1, 63, 64, 65, 4096, 4097, 5000, 64**3, 64**3 * 3 + 70):
        for closed in (True, False):
            batch, group = tables.batch(items, closed=closed)
            tables.ack(group, (0, max(1, items // 3)), (items - 1, items))
            made.append(batch)
            batch, group = tables.batch(items, closed=closed)
            tables.ack(group, (0, items))  # the open ones are marked above what becomes the root
            made.append(batch)
    deep, group = tables.batch(2**32 - 1, closed=False)
    tables.ack(group, (0, 2**32 - 2))
    group = tables.ledger.add(deep.batch_id, 2**31)
    tables.ledger.close(deep.batch_id)
    tables.ack(group, (7, 2**31))
    grown, group = tables.batch(64, closed=False)
    tables.ack(group, (0, 64))
    tables.ledger.add(grown.batch_id, 6)
    tables.ledger.close(grown.batch_id)
    failing, group = tables.batch(70)
    tables.ledger.mark([Failure(group[63], "broken"), Failure(group[5], "broken")]).whole()
    cancelled, group = tables.batch(100, closed=False)
    tables.ack(group, (64, 100))
    tables.ledger.cancel(cancelled.batch_id)
    partial, group = tables.batch(
        10, deadline=tables.memory.clock.now() + 1_000_000, on_deadline=OnDeadline.COMPLETE
    )
    tables.memory.batches.end(
        partial.batch_id, State.COMPLETE, now=tables.memory.clock.now(), sources=(State.CLOSED,), partial=True
    )
    timed, group = tables.batch(100)  # ended 40 s after it was opened
    tables.ack(group, (0, 30))
    ended_at = tables.row(timed).created_at + 40_000
    tables.memory.batches.end(
        timed.batch_id, State.CANCELLED, now=ended_at, sources=(State.CLOSED,), partial=False
    )
    empty, _ = tables.batch(1, closed=False)
    tables.ledger.cancel(empty.batch_id)
    estimated = tables.ledger.open(OpenBatch(mode=Mode.ESTIMATED))
    tables.ledger.add(estimated.batch_id, 9)
    return [*made, deep, grown, failing, cancelled, partial, timed, empty, estimated]


def summed(tables: Tables, items: int, *, closed: bool = True) -> tuple[Batch, Group]:
    return tables.batch(items, closed=closed, totals=("rows", "cents"), user_key="orders")


def bring(tables: Tables, group: Group, ordinals: Iterable[int]) -> None:
    """Acknowledge items, of which each third brings nothing."""
    tables.ledger.mark(
        [Done(group[n], {"rows": n, "cents": -1} if n % 3 < 2 else {}) for n in ordinals]
    ).whole()


def with_totals(tables: Tables) -> list[Batch]:
    """Batches with totals of every kind and state, all as the ledger left them."""
    made = []
    for items in (1, 63, 64, 65, 4096, 4097, 5000):
        for end in ("open", "closed", "done", "cancelled"):
            batch, group = summed(tables, items, closed=end != "open")
            bring(tables, group, range(items) if end == "done" else range(0, items, 1 if items < 65 else 3))
            tables.ledger.mark(
                [Failure(group[n], "torn", totals={"rows": n}) for n in {0, items - 1}]
            ).whole()
            if end == "cancelled":
                tables.ledger.cancel(batch.batch_id)
            made.append(batch)
    ranged, group = summed(tables, 130)
    bring(tables, group, range(64, 70))
    tables.ack(group, (0, 130))
    silent, group = summed(tables, 200)
    tables.ack(group, (0, 200))
    late, group = summed(tables, 200, closed=False)
    bring(tables, group, range(200))
    tables.ledger.close(late.batch_id)
    nothing = tables.ledger.open(OpenBatch(totals=("rows",)))
    tables.ledger.close(nothing.batch_id)
    counting = tables.ledger.open(OpenBatch(mode=Mode.ESTIMATED, totals=("rows",)))
    tables.ledger.add(counting.batch_id, 9)
    tables.ledger.mark([Count(counting.batch_id, 3, {"rows": 5})]).whole()
    return [*made, ranged, silent, late, nothing, counting, *parents(tables)]


def parents(tables: Tables) -> tuple[Batch, Batch]:
    """Batches whose items are parents of batches, and bring their sums: a few, and all with the largest."""
    few, some = summed(tables, 70)
    whole, all_ = summed(tables, 130)
    for group, ordinals in ((some, (0, 1, 69)), (all_, range(130))):
        for n in ordinals:
            tables.ledger.mark_parent(
                Done(group[n], {"rows": MAX_CHILD_SUM, "cents": -MAX_CHILD_SUM}), exact=True
            )
    return few, whole


def wrong_totals(tables: Tables) -> set[Found]:  # noqa: PLR0915
    """Every disagreement of sums, each in a batch of its own."""
    expected: set[Found] = set()

    def done(items: int = 5_000) -> Batch:
        batch, group = summed(tables, items)
        bring(tables, group, range(items))
        tables.dump_batch(batch)
        return batch

    def going_on() -> Batch:
        batch, group = summed(tables, 5_000, closed=False)
        bring(tables, group, range(1_000))
        tables.dump_batch(batch)
        return batch

    def change(batch: Batch, level: int, number: int, **by: int) -> str:
        """Add to the numbers of a word, and say its key."""
        key = f"{batch.batch_id}/{level}/{number}"
        row = tables.words[key]
        for name, more in by.items():
            row = {**row, name: {"N": str(int(row[name]["N"] if name in row else 0) + more)}}
        tables.words[key] = row
        return key

    def found(batch: Batch, *words: str | None) -> None:
        expected.update(wrong(batch, "wrong_total", word) for word in words)

    # a leaf that added on a duplicate: its parent has the sums of before
    batch = done()
    change(batch, 0, 5, t0=1)
    found(batch, f"{batch.batch_id}/1/0")
    # a parent that added the sums of a word twice; and the word above it has those of before
    batch = done()
    found(batch, change(batch, 1, 0, t1=-43), f"{batch.batch_id}/2/0")
    # the residue's sums lost on the way: at the last word of level 1, and at the root
    batch = done()
    found(batch, change(batch, 1, 1, t0=-100), f"{batch.batch_id}/2/0")
    batch = done()
    found(batch, change(batch, 2, 0, t0=-12_345), None)
    # all sums of a word lost, their number as well
    batch = done()
    key = f"{batch.batch_id}/1/0"
    tables.words[key] = {n: v for n, v in tables.words[key].items() if n not in ("t0", "t1", "carried")}
    found(batch, key, f"{batch.batch_id}/2/0")
    # more tallies than words
    batch = done()
    found(batch, change(batch, 1, 0, carried=1))
    # a leaf that is not there any more
    batch = done()
    tables.words.pop(f"{batch.batch_id}/0/7")
    found(batch, f"{batch.batch_id}/1/0")
    # a row that is not its root's: of one leaf, of a tree, and one that does not claim to be exact
    for items, changes in (
        (50, {"totals": {"rows": 1, "cents": -34}}),
        (5_000, {"totals": {"rows": 0, "cents": 7}}),
        (5_000, {"totals": {"rows": 1, "cents": 0}, "totals_exact": False}),
    ):
        batch = done(items)
        tables.set_batch(batch, **changes)
        found(batch, None)
    # a row that has the sums of all items, as it says, and has none
    batch = done()
    tables.batches[batch.batch_id] = {
        name: value for name, value in tables.batches[batch.batch_id].items() if name not in SUMS
    }
    found(batch, None)
    # a leaf with more than its items may bring
    batch = going_on()
    found(batch, change(batch, 0, 15, t1=-(40 * MAX_CHILD_SUM)))
    # leaves with more than any item may bring, together more than a number holds
    batch = done()
    leaves = [key for key in tables.words if key.startswith(f"{batch.batch_id}/0/")]
    assert len(leaves) * MAX_SUM >= 10**38
    for key in leaves:
        tables.words[key] = {**tables.words[key], "t0": {"N": str(MAX_SUM)}}
    found(batch, *leaves, f"{batch.batch_id}/1/0", f"{batch.batch_id}/1/1")
    # sums of totals that the batch does not have, in a leaf and above
    plain, group = tables.batch(200)
    tables.ledger.mark([*group][:100]).whole()
    tables.dump_batch(plain)
    found(plain, change(plain, 0, 1, t0=3), change(plain, 1, 0, t1=3))
    batch = done()
    found(batch, change(batch, 0, 3, t2=1))
    # in a batch that goes on, words above what is done can be judged; if it was active, they may have moved
    batch = going_on()
    found(batch, change(batch, 1, 0, t0=1))
    busy = going_on()
    tables.set_batch(busy, touched_at=tables.at - 5_000)
    expected.add((busy.batch_id, change(busy, 1, 0, t0=1), "wrong_total", True, False))
    return expected


def planted(tables: Tables) -> set[Found]:  # noqa: C901, PLR0915
    """Every kind of finding, each in a batch of its own."""
    expected: set[Found] = set()

    # a finished leaf whose parent's bit was lost, in three places of a tree, one of them deep
    for items, level, number in ((5000, 0, 3), (64**3 * 3, 2, 1), (64**4 * 5, 3, 2)):
        batch, group = tables.batch(items)
        span = 64 ** (level + 1)
        tables.ack(group, (number * span, (number + 1) * span))
        tables.dump_batch(batch)
        key = tables.set_word(batch, level, number, 0)
        tables.words.pop(f"{batch.batch_id}/{level + 1}/{number // 64}")
        expected.add(wrong(batch, "lost_parent", key))
    # the residue of the last word of a closed batch; in an open one it means nothing
    for closed in (True, False):
        batch, group = tables.batch(130, closed=closed)
        tables.ack(group, (128, 130))
        tables.dump_batch(batch)
        tables.words.pop(f"{batch.batch_id}/1/0", None)
        if closed:
            expected.add(wrong(batch, "lost_parent", f"{batch.batch_id}/0/2"))
    # a word below a cleared bit is not lost, whatever its value
    batch, group = tables.batch(64**3 * 2)
    tables.ack(group, (0, 64**3))
    tables.dump_batch(batch)
    tables.set_word(batch, 0, 9, 0)

    # all done, not complete; with and without words
    stuck, group = tables.batch(70)
    tables.ack(group, (0, 70))
    tables.dump_batch(stuck)
    tables.set_batch(stuck, state=State.CLOSED, ended_at=None)
    expected.add(wrong(stuck, "stuck"))
    nothing, _ = tables.batch(1, closed=False)
    tables.set_batch(nothing, state=State.CLOSED, closed_at=tables.memory.clock.now(), items=0)
    expected.add(wrong(nothing, "stuck"))
    # complete, and an item is pending
    early, group = tables.batch(70)
    tables.ack(group, (0, 69))
    tables.dump_batch(early)
    tables.set_batch(early, state=State.COMPLETE, ended_at=tables.memory.clock.now())
    expected.add(wrong(early, "early"))

    # words that contradict themselves
    batch, _ = tables.batch(200)
    tables.dump_batch(batch)
    for number, word, others in (
        (0, FULL - 3, {"done": {"NS": ["0"]}}),
        (1, FULL - 3, {"done": {"NS": ["0", "63"]}}),
        (2, FULL - 1, {"failed": {"N": "2"}}),
    ):
        key = tables.set_word(batch, 0, number, word, **others)
        expected.add(wrong(batch, "contradiction", key))
    key = tables.set_word(batch, 1, 0, FULL - 2, failed={"N": "2"})
    expected.add(wrong(batch, "contradiction", key))
    bare = word_row(f"{batch.batch_id}/0/3", None, batch.expires_at)
    tables.words[f"{batch.batch_id}/0/3"] = {**bare, "done": {"NS": ["3"]}}
    expected.add(wrong(batch, "contradiction", f"{batch.batch_id}/0/3"))
    # a whole word put without its set, and a row that holds only leases, are as they should be
    whole, _ = tables.batch(200)
    tables.dump_batch(whole)
    tables.words[f"{whole.batch_id}/0/1"] = {
        **word_row(f"{whole.batch_id}/0/1", None, whole.expires_at),
        "word": {"N": "0"},
    }
    tables.set_word(whole, 1, 0, FULL - 2)
    tables.words[f"{whole.batch_id}/0/2"] = {
        **word_row(f"{whole.batch_id}/0/2", None, whole.expires_at),
        "l5": {"N": "1790000030"},
    }

    # bits and words that are not of the tree
    batch, _ = tables.batch(100)
    tables.dump_batch(batch)
    expected |= {
        wrong(batch, "no_such_child", tables.set_word(batch, 0, 1, FULL ^ 1 << 63)),
        wrong(batch, "outside", tables.set_word(batch, 0, 2, FULL - 1)),
        wrong(batch, "outside", tables.set_word(batch, 2, 0, FULL - 1)),
        wrong(batch, "outside", tables.set_word(batch, 9, 0, FULL - 1)),
    }
    batch, _ = tables.batch(64)  # above the root, and the root is not done
    tables.dump_batch(batch)
    expected.add(wrong(batch, "outside", tables.set_word(batch, 1, 0, FULL - 1)))
    counting = tables.ledger.open(OpenBatch(mode=Mode.ESTIMATED))
    tables.ledger.add(counting.batch_id, 9)
    tables.dump_batch(counting)
    expected.add(wrong(counting, "outside", tables.set_word(counting, 0, 0, FULL - 1)))

    empty, _ = tables.batch(1, closed=False)
    tables.set_batch(empty, items=0)
    expected.add(wrong(empty, "outside", tables.set_word(empty, 0, 0, FULL - 1)))

    # keys and values that nobody wrote
    for key in ("", "7", "7/0", "7/0/1/2", "07/0/1", "7/-1/0", "7/0/x", f"{2**53}/0/0", "a/b/c"):
        tables.words[key] = word_row(key, FULL - 1, batch.expires_at)
        expected.add((None, key, "malformed_key", False, True))
    batch, _ = tables.batch(6400)
    tables.dump_batch(batch)
    for number, others in enumerate(
        (
            {"word": {"N": str(2**64)}},
            {"word": {"N": "-1"}},
            {"word": {"N": "1.5"}},
            {"word": {"S": "1"}},
            {"done": {"NS": ["64"]}},
            {"failed": {"N": "-2"}},
            {"expires_at": {"S": "tomorrow"}},
            {"expires_at": {"N": "-1"}},
            {"expires_at": {"N": str(2**53 + 1)}},
            {"expires_at": {"N": str(2**63 - 1)}},
            {"t0": {"N": str(MAX_SUM + 1)}},
            {"t1": {"N": str(-MAX_SUM - 1)}},
            {"t1": {"N": "9" * 38}},
            {"t2": {"N": "1e3"}},
            {"carried": {"N": "-1"}},
            {"carried": {"N": "x"}},
        )
    ):
        expected.add(wrong(batch, "malformed_row", tables.set_word(batch, 0, number, FULL - 1, **others)))

    # rows of batches
    for others in (
        {"state": {"S": "done"}},
        {"items": {"N": "-1"}},
        {"items": {"N": str(2**40 + 1)}},
        {"salt": {"B": b"short"}},
        {"created_at": {"S": "now"}},
        {"closed_at": {"S": "now"}},
        {"mode": {"N": "1"}},
        {"totals": {"S": "rows rows, cents"}},
        {"totals": {"S": "a b c d e"}},
        {"totals": {"N": "1"}},
        {"t0": {"N": "0.5"}},
        {"items": {"N": str(-(2**63))}},
        {"acked": {"N": str(2**63 - 1)}},
        *({name: {"N": str(2**63 - 1)}} for name in TIMES),
        *({name: {"N": "-1"}} for name in TIMES),
        {"expires_at": {"N": str(2**63)}},
    ):
        batch, group = tables.batch(70)
        tables.ack(group, (0, 1))  # its words are nobody's fault
        tables.dump_batch(batch)
        tables.batches[batch.batch_id] |= others
        expected.add(wrong(batch, "malformed_row"))
    for changes in (
        {"state": State.OPEN},
        {"closed_at": None},
        {"ended_at": 1_790_000_000_000},
        {"partial": True},
        {"state": State.CANCELLED},
    ):
        batch, _ = tables.batch(70)
        tables.set_batch(batch, **changes)
        expected.add(wrong(batch, "contradiction"))
    batch, group = tables.batch(70)
    tables.ack(group, (0, 70))
    tables.dump_batch(batch)
    tables.set_batch(batch, closed_at=None)
    expected.add(wrong(batch, "contradiction"))
    misfiled, _ = tables.batch(70)
    tables.dump_batch(misfiled)
    tables.batches[misfiled.batch_id]["shelf"] = {"S": f"open#{misfiled.batch_id % 8}"}
    expected.add(wrong(misfiled, "misfiled"))

    # expiry: too early, gone, and forged
    batch, _ = tables.batch(200)
    tables.dump_batch(batch)
    for number, early_by in ((0, 1), (1, 40 * 86_400)):
        key = f"{batch.batch_id}/0/{number}"
        tables.words[key] = word_row(key, FULL - 1, batch.expires_at - early_by)
        expected.add(wrong(batch, "expires_early", key))
    # a word of a batch that has ended may go before the row does
    ended, _ = tables.batch(200, closed=False)
    tables.ledger.cancel(ended.batch_id)
    tables.dump_batch(ended)
    key = f"{ended.batch_id}/0/0"
    tables.words[key] = word_row(key, FULL - 1, tables.row(ended).expires_at - 1)
    gone, group = tables.batch(200)
    tables.ack(group, (0, 70))
    tables.dump_batch(gone)
    tables.set_batch(gone, expires_at=tables.at // 1000 - 5)
    expected |= {(gone.batch_id, key, "orphan", False, False) for key in tables.words_of(gone)}
    tables.words["4711/0/0"] = word_row("4711/0/0", 5, tables.at // 1000 + 366 * 86_400 - 1)
    expected.add((4711, "4711/0/0", "orphan", False, False))
    tables.words["4711/0/1"] = word_row("4711/0/1", 5, tables.at // 1000 + 366 * 86_400 + 6)
    expected.add((4711, "4711/0/1", "forged", False, True))
    tables.words["4711/0/2"] = word_row("4711/0/2", 5, tables.at // 1000 - 1)

    tables.words["4711/0/3"] = word_row("4711/0/3", 5, 2**53)
    expected.add((4711, "4711/0/3", "forged", False, True))

    # what an active batch shows may be on its way; one row's contradiction is not
    busy = {"touched_at": tables.at - 5000}
    moving, group = tables.batch(70)
    tables.ack(group, (0, 70))
    tables.dump_batch(moving)
    tables.set_batch(moving, state=State.CLOSED, ended_at=None, **busy)
    tables.words.pop(f"{moving.batch_id}/1/0")
    expected.add((moving.batch_id, f"{moving.batch_id}/0/1", "lost_parent", True, False))
    growing, _ = tables.batch(70, closed=False)
    tables.set_batch(growing, **busy)
    expected |= {
        (growing.batch_id, tables.set_word(growing, 0, 1, FULL ^ 1 << 60), "no_such_child", True, False),
        (growing.batch_id, tables.set_word(growing, 0, 2, FULL - 1), "outside", True, False),
        wrong(growing, "contradiction", tables.set_word(growing, 0, 0, FULL - 1, done={"NS": ["5"]})),
    }
    closed, _ = tables.batch(70)
    tables.set_batch(closed, **busy)
    expected.add(wrong(closed, "outside", tables.set_word(closed, 0, 2, FULL - 1)))  # its size is final
    # up to a minute after it ended: clocks may differ by so much
    for before, in_flux in ((10, True), (60_000, True), (60_001, False)):
        ended, _ = tables.batch(70)
        tables.set_batch(ended, state=State.COMPLETE, ended_at=tables.at - before)
        expected.add((ended.batch_id, None, "early", in_flux, not in_flux))
    return expected
