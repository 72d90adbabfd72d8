"""What the tasks do, called as they are: any rows become the minimal cover, and all others rejects."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.domain.batch import Batch, Mode
from fanin.domain.tree import Mark, Tree
from fanin.spark.ack.input_schema import Form
from fanin.spark.ack.issued import Issued
from fanin.spark.ack.lifting import LIFTED, cover_upper, lift
from fanin.spark.ack.page_merger import merge
from fanin.spark.ack.tasks import coalesce
from fanin.spark.runtime.rejects import Reason
from tests.spark.given import Given, batch, block, items_of, minimal, rows_of, shuffled

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


def merged(pages: list[Record], form: Form) -> tuple[list[tuple[int, Mark]], Counter[tuple[Any, str]], int]:
    """Marks, rejects and number of rows, after the merge."""
    rows = [
        row for part in shuffled(pages, 3) for row in rows_of(merge(SOURCE, form)(part)) if part is not None
    ]
    marks = [
        (row["batch_id"], Mark(row["level"], row["number"], row["mask"] & MASK))
        for row in rows
        if row["mask"]
    ]
    above: dict[int, dict[int, int]] = {}
    for batch_id, (level, number, mask) in marks:
        if level == LIFTED:
            words = above.setdefault(batch_id, {})
            words[number] = words.get(number, 0) | mask
    low = [(batch_id, mark) for batch_id, mark in marks if mark.level < LIFTED]
    roots = Issued(SOURCE)
    high = [
        (batch_id, mark)
        for batch_id, words in above.items()
        for mark in lift(words, LIFTED, roots.root_level(batch_id))
    ]
    rejects = Counter((row["value"], row["reason"]) for row in rows if row["reason"])
    return low + high, rejects, sum(row["rows"] or 0 for row in rows)


def tasks(shares: list[list[Record]], form: Form) -> list[Record]:
    """The pages of several tasks."""
    return [page for share in shares for page in coalesce(SOURCE, form)(share)]


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


@settings(max_examples=40)
@given(chosen=some_items(), bad=st.lists(st.sampled_from(list(BAD_IDS)), max_size=8), seed=st.randoms())
def test_ids_become_the_minimal_cover_and_rejects(
    chosen: list[tuple[int, int]], bad: list[str | None], seed: Any
) -> None:
    # Given ids in any order, some of them repeated, some of them none of ours, over three tasks
    values = [ids_of(ROWS[batch_id], ordinal) for batch_id, ordinal in chosen] + bad
    seed.shuffle(values)
    cuts = [values[at::3] for at in range(3)]
    shares = [[pa.RecordBatch.from_pydict({"item": pa.array(part, pa.string())})] for part in cuts]

    # When they are coalesced and merged
    marks, rejects, rows = merged(tasks(shares, Form(ids=True)), Form(ids=True))

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
def test_ordinals_become_the_same(chosen: list[tuple[int, int]], extra: list[tuple[int, int]]) -> None:
    # Given rows of batches and ordinals, with nulls and what is no number
    form = Form(ids=False)
    pairs = [*chosen, *extra]
    columns = {
        "batch_id": pa.array([p[0] for p in pairs] + [None, 7, 7], pa.int64()),
        "ordinal": pa.array([p[1] for p in pairs] + [1, None, None], pa.int64()),
        "raw": pa.array([None] * (len(pairs) + 2) + ['{"ordinal":"x"}'], pa.string()),
    }
    record = pa.RecordBatch.from_pydict(columns)
    half = record.num_rows // 2

    marks, rejects, rows = merged(tasks([[record[:half]], [record[half:]]], form), form)

    for row in BATCHES:
        mine = {ordinal for batch_id, ordinal in chosen if batch_id == row.batch_id}
        found = {mark for batch_id, mark in marks if batch_id == row.batch_id}
        assert found == minimal(mine, Tree().root_level(row.items))
    expected = Counter((form.value(*pair), "foreign") for pair in extra)
    expected += Counter(
        {('{"batch_id": null, "ordinal": 1}', "null"): 1, ('{"ordinal":"x"}', "malformed"): 1}
    )
    expected[form.value(7, None), "null"] += 1
    for pair, times in Counter(chosen).items():
        expected[form.value(*pair), "duplicate"] += times - 1
    assert rejects == +expected
    assert rows == len(pairs) + 3


def test_a_range_has_the_cover_that_the_tree_gives_it() -> None:
    # Given a contiguous range, in order
    form = Form(ids=False, batch_id=9)
    start, stop = 1_000, 299_999
    record = pa.RecordBatch.from_pydict({"ordinal": pa.array([*range(start, stop), None, None], pa.int64())})

    marks, rejects, rows = merged(tasks([[record]], form), form)

    # Then it is that; and what has no ordinal is told as it came, which was without a batch
    assert {mark for _, mark in marks} == set(Tree().cover(start, stop, 300_000))
    assert rejects == {('{"ordinal": null}', "null"): 2}
    assert rows == stop - start + 2


def test_an_item_that_failed_is_not_acknowledged_too() -> None:
    # Given a whole word acknowledged, of which one item has also failed
    form = Form(ids=True)
    values = [ids_of(BATCHES[1], n) for n in range(64)]
    acked = coalesce(SOURCE, form)([pa.RecordBatch.from_pydict({"item": values})])
    failed = coalesce(SOURCE, form, failed=True)([pa.RecordBatch.from_pydict({"item": values[63:]})])

    marks, rejects, _ = merged([*acked, *failed], form)

    # Then the other 63 are marked, and the acknowledgement is the repeat
    assert marks == [(9, Mark(0, 0, 2**63 - 1))]
    assert rejects == {(values[63], "duplicate"): 1}


def test_keys_without_number_do_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given room for three groups, and ten of one item each, twice
    monkeypatch.setattr("fanin.spark.ack.coalescer._KEYS", 3)
    form = Form(ids=True)
    values = [f"{block(BATCHES[0], n, 1).prefix}:0" for n in range(10)] * 2
    records = [pa.RecordBatch.from_pydict({"item": [value]}) for value in values]
    monkeypatch.setattr("fanin.spark.ack.tasks._CHUNK", 1)

    marks, rejects, _ = merged(list(coalesce(SOURCE, form)(records)), form)

    assert marks == [(7, Mark(0, 0, 2**10 - 1))]
    assert rejects == Counter((value, "duplicate") for value in values[:10])


@pytest.mark.parametrize("items", [64**4, 64**4 + 1, 64**5])
def test_levels_above_windows_are_lifted_to_the_root_and_no_further(items: int) -> None:
    # Given the bits of all whole windows of a batch, three of whose words hold bit 63
    source = Given((batch(21, items),))
    windows = items // 64**3
    words = Tree().marks(range(windows))
    rows = {
        "batch_id": [21] * len(words),
        "number": list(words),
        "mask": [mask - (mask >> 63 << 64) for mask in words.values()],
    }

    found = rows_of(cover_upper(source)([pa.RecordBatch.from_pydict(rows)]))

    # Then they are the cover by its definition, three levels up
    marks = {Mark(row["level"] - 3, row["number"], row["mask"] & MASK) for row in found}
    assert marks == minimal(set(range(windows)), Tree().root_level(items) - 3)


def test_items_of_marks_are_counted_once() -> None:
    assert items_of([(1, 0, 1, -(2**63)), (1, 1, 0, 1)]) == Counter(
        [(1, 127), *((1, ordinal) for ordinal in range(64))]
    )
