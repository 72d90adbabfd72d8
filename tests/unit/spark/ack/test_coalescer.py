"""Tasks that coalesce and merge, called without Spark: rows become the minimal cover, or rejects."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.domain.batch import Batch, Mode
from fanin.domain.tree import Bits, Tree
from fanin.spark.ack.coalescer import Coalescer, chunks, coalesce_task
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.page_merger import merge_task
from fanin.spark.runtime.rejects import Reason
from tests.spark.given import Given, batch, block, minimal, rows_of, shuffled

BATCHES = (batch(7, 9_000), batch(9, 300_000), batch(11, 40))
GONE = batch(13, 100, expires_at=1)
ESTIMATED = batch(15, 100, mode=Mode.ESTIMATED)
SOURCE = Given((*BATCHES, GONE, ESTIMATED), at=2_000)
ROWS = {row.batch_id: row for row in SOURCE.rows}
MASK = Tree().full

Record = Any


def ids_of(row: Batch, ordinal: int) -> str:
    """An item under the id of its group: each batch has two."""
    half = row.items // 2
    first, size = (0, half) if ordinal < half else (half, row.items - half)
    return f"{block(row, first, size).prefix}:{ordinal - first}"


@dataclass
class Growing:
    """A stack whose batches may be others the next time."""

    rows: tuple[Batch, ...]

    def ledger(self) -> Any:
        return Given(self.rows).ledger()


def merged(
    pages: list[Record], schema: InputSchema, source: Any = SOURCE
) -> tuple[list[tuple[int, Bits]], Counter[tuple[Any, str]], int]:
    """Marks, rejects and number of rows, after the merge."""
    rows = [
        row
        for part in shuffled(pages, 3)
        for row in rows_of(merge_task(source, schema)(part))
        if part is not None
    ]
    marks = [
        (row["batch_id"], Bits(row["level"], row["number"], row["mask"] & MASK))
        for row in rows
        if row["mask"]
    ]
    rejects = Counter((row["value"], row["reason"]) for row in rows if row["reason"])
    return marks, rejects, sum(row["rows"] or 0 for row in rows)


def tasks(shares: list[list[Record]], schema: InputSchema) -> list[Record]:
    """The pages of several tasks."""
    return [page for share in shares for page in coalesce_task(SOURCE, schema)(share)]


BAD_IDS = {
    None: Reason.NULL,
    "": Reason.MALFORMED,
    "no id": Reason.MALFORMED,
    "1:2:3": Reason.MALFORMED,
    ids_of(BATCHES[0], 5) + "x": Reason.MALFORMED,
    ids_of(BATCHES[0], 5).rpartition(":")[0] + ":05": Reason.MALFORMED,
    ids_of(BATCHES[0], 5).upper(): Reason.MALFORMED,
    ids_of(BATCHES[0], 5).rpartition(":")[0] + ":4500": Reason.FOREIGN,
    block(batch(8, 9), 0, 9).prefix + ":1": Reason.FOREIGN,
    block(batch(7, 9, salt=bytes([1] * 16)), 0, 9).prefix + ":1": Reason.FOREIGN,
    block(batch(7, 9), 0, 9_001).prefix + ":1": Reason.FOREIGN,
    block(GONE, 0, 9).prefix + ":1": Reason.GONE,
    block(ESTIMATED, 0, 9).prefix + ":1": Reason.FOREIGN,
}


@st.composite
def some_items(draw: st.DrawFn, longest: int = 4_200) -> list[tuple[int, int]]:
    """Items of the batches: single ones, bit 63 among them, and runs that fill words of one level or two."""
    chosen: list[tuple[int, int]] = []
    for row in BATCHES:
        ordinals = st.one_of(
            st.integers(0, row.items - 1), st.sampled_from([63, 127, 4_095, 262_143, row.items - 1])
        )
        chosen += [(row.batch_id, n) for n in draw(st.lists(ordinals, max_size=20)) if n < row.items]
        for _ in range(draw(st.integers(0, 2))):
            start = draw(st.integers(0, row.items - 1)) // 64 * 64
            length = draw(st.sampled_from([1, 64, 65, longest]))
            chosen += [(row.batch_id, n) for n in range(start, min(row.items, start + length))]
    return chosen


@settings(max_examples=20)
@given(chosen=some_items(), bad=st.lists(st.sampled_from(list(BAD_IDS)), max_size=8), seed=st.randoms())
def test_ids_become_the_minimal_cover_and_rejects(chosen, bad, seed):
    # Given ids in any order, some repeated, some not ours, over three tasks
    values = [ids_of(ROWS[batch_id], ordinal) for batch_id, ordinal in chosen] + bad
    seed.shuffle(values)
    cuts = [values[at::3] for at in range(3)]
    shares = [[pa.RecordBatch.from_pydict({"item": pa.array(part, pa.string())})] for part in cuts]
    # When they are coalesced and merged
    marks, rejects, rows = merged(tasks(shares, InputSchema(by_id=True)), InputSchema(by_id=True))
    # Then each batch has its minimal cover
    for row in BATCHES:
        mine = {ordinal for batch_id, ordinal in chosen if batch_id == row.batch_id}
        found = [mark for batch_id, mark in marks if batch_id == row.batch_id]
        assert len(found) == len(set(found))
        assert set(found) == minimal(mine, Tree().root_level(row.items))
    # And every other row is a reject, as it came
    expected = Counter((value, str(BAD_IDS[value])) for value in bad)
    for value, times in Counter(v for v in values if v not in BAD_IDS).items():
        expected[value, "duplicate"] += times - 1
    assert rejects == +expected
    assert rows == len(values)


@settings(max_examples=20)
@given(
    chosen=some_items(), extra=st.lists(st.sampled_from([(7, -1), (7, 9_000), (8, 0), (-3, 5)]), max_size=4)
)
def test_ordinals_become_the_same(chosen, extra):
    # Given rows of batches and ordinals, with nulls and a row whose ordinal is not a number
    schema = InputSchema(by_id=False)
    pairs = [*chosen, *extra]
    columns = {
        "batch_id": pa.array([p[0] for p in pairs] + [None, 7, 7], pa.int64()),
        "ordinal": pa.array([p[1] for p in pairs] + [1, None, None], pa.int64()),
        "raw": pa.array([None] * (len(pairs) + 2) + ['{"ordinal":"x"}'], pa.string()),
    }
    record = pa.RecordBatch.from_pydict(columns)
    half = record.num_rows // 2

    marks, rejects, rows = merged(tasks([[record[:half]], [record[half:]]], schema), schema)

    for row in BATCHES:
        mine = {ordinal for batch_id, ordinal in chosen if batch_id == row.batch_id}
        found = {mark for batch_id, mark in marks if batch_id == row.batch_id}
        assert found == minimal(mine, Tree().root_level(row.items))
    expected = Counter((schema.row_json(*pair), "foreign") for pair in extra)
    expected += Counter(
        {('{"batch_id": null, "ordinal": 1}', "null"): 1, ('{"ordinal":"x"}', "malformed"): 1}
    )
    expected[schema.row_json(7, None), "null"] += 1
    for pair, times in Counter(chosen).items():
        expected[schema.row_json(*pair), "duplicate"] += times - 1
    assert rejects == +expected
    assert rows == len(pairs) + 3


def test_a_range_has_the_cover_that_the_tree_gives_it():
    # Given a contiguous range, in order
    schema = InputSchema(by_id=False, batch_id=9)
    start, stop = 1_000, 299_999
    record = pa.RecordBatch.from_pydict({"ordinal": pa.array([*range(start, stop), None, None], pa.int64())})

    marks, rejects, rows = merged(tasks([[record]], schema), schema)
    # Then the marks are those; and rows without an ordinal are rejects as they came, without a batch
    assert {mark for _, mark in marks} == set(Tree().cover(start, stop, 300_000))
    assert rejects == {('{"ordinal": null}', "null"): 2}
    assert rows == stop - start + 2


def test_the_highest_ordinal_of_all_does_not_keep_a_batch_from_being_read_again():
    # Given a task that has read two batches, of which one grows
    schema, source = InputSchema(by_id=False), Growing((batch(7, 10), batch(9, 10)))
    first = pa.RecordBatch.from_pydict({"batch_id": [7, 9], "ordinal": [0, 0]})
    coalescer = Coalescer(source, schema)
    given = list(coalescer.add(first))
    source.rows = (batch(7, 20), batch(9, 10))
    # When it comes to a new item, beside the highest number that a column can hold
    most = 2**63 - 1
    then = pa.RecordBatch.from_pydict({"batch_id": [7, 7, 9], "ordinal": [15, most, 1]})
    given += [*coalescer.add(then), *coalescer.finish()]
    # Then the item is acknowledged, and only that number is nobody's
    marks, rejects, _ = merged(given, schema, source)
    assert sorted(marks) == [(7, Bits(0, 0, 1 | 1 << 15)), (9, Bits(0, 0, 0b11))]
    assert rejects == {(schema.row_json(7, most), "foreign"): 1}


def test_an_item_that_failed_is_not_acknowledged_too():
    # Given a whole word acknowledged, of which one item has also failed
    schema = InputSchema(by_id=True)
    values = [ids_of(BATCHES[1], n) for n in range(64)]
    acked = coalesce_task(SOURCE, schema)([pa.RecordBatch.from_pydict({"item": values})])
    record = pa.RecordBatch.from_pydict({"item": values[63:], "reason": ["torn"]})
    failed = coalesce_task(SOURCE, schema)([record])

    marks, rejects, _ = merged([*acked, *failed], schema)
    # Then the other 63 are marked, and the acknowledgement is the repeat
    assert marks == [(9, Bits(0, 0, 2**63 - 1))]
    assert rejects == {(values[63], "duplicate"): 1}


def test_keys_without_number_do_not_stay_in_memory(monkeypatch):
    # Given room for three groups, and ten of one item each, twice
    monkeypatch.setattr("fanin.spark.ack.coalescer._KEYS", 3)
    schema = InputSchema(by_id=True)
    values = [f"{block(BATCHES[0], n, 1).prefix}:0" for n in range(10)] * 2
    records = [pa.RecordBatch.from_pydict({"item": [value]}) for value in values]
    monkeypatch.setattr("fanin.spark.ack.coalescer._CHUNK", 1)

    marks, rejects, _ = merged(list(coalesce_task(SOURCE, schema)(records)), schema)

    assert marks == [(7, Bits(0, 0, 2**10 - 1))]
    assert rejects == Counter((value, "duplicate") for value in values[:10])


def ordinals_of(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"ordinal": pa.array(values, pa.int64())})


def test_pages_are_joined_until_there_are_enough_rows(monkeypatch):
    monkeypatch.setattr("fanin.spark.ack.coalescer._CHUNK", 4)
    records = [ordinals_of(1, 2), ordinals_of(), ordinals_of(3), ordinals_of(4, 5), ordinals_of(6)]

    assert [chunk.column(0).to_pylist() for chunk in chunks(records)] == [[1, 2, 3, 4, 5], [6]]


def test_no_rows_are_no_chunks():
    assert list(chunks([ordinals_of(), ordinals_of()])) == []


def test_a_task_without_rows_says_that_it_read_none():
    task = coalesce_task(Given((batch(7, 9),)), InputSchema(by_id=False, batch_id=7))
    assert [row["rows"] for row in rows_of(task([]))] == [0]


def test_a_repeat_is_shown_under_the_id_that_it_came_with():
    # Given the same item under the ids of two groups, in two tasks
    first, second = (f"{block(BATCHES[0], start, 100).prefix}:{70 - start}" for start in (0, 50))
    shares = [[pa.RecordBatch.from_pydict({"item": [item]})] for item in (first, second)]

    marks, rejects, _ = merged(tasks(shares, InputSchema(by_id=True)), InputSchema(by_id=True))

    assert marks == [(7, Bits(0, 1, 1 << 6))]
    assert rejects in ({(first, "duplicate"): 1}, {(second, "duplicate"): 1})


@pytest.mark.parametrize(("items", "level"), [(64**3, 2), (64**3 + 1, 3)])
def test_a_whole_window_is_lifted_to_the_root_and_no_further(items, level):
    source, schema = Given((batch(21, items),)), InputSchema(by_id=False, batch_id=21)

    marks, _, _ = merged(list(coalesce_task(source, schema)([ordinals_of(*range(64**3))])), schema, source)

    assert marks == [(21, Bits(level, 0, MASK if level == 2 else 1))]
