"""What a dataset brings to the totals of batches on the stack: the values of each item once."""

import json
import random

from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.marks import Done
from fanin.spark.ack.driver import acknowledge
from fanin.spark.jobs.ack import JOB
from fanin.spark.runtime.service import Service
from tests.spark import faults
from tests.spark.items import written

ITEMS = 1_200


def opened(service: Service, *totals: str, items: int = ITEMS) -> tuple[Batch, Group]:
    """A closed batch with totals."""
    ledger = service.ledger()
    batch = ledger.open(OpenBatch(totals=totals))
    group = ledger.add(batch.batch_id, items)
    ledger.close(batch.batch_id)
    return batch, group


def totals_of(service: Service, batch: Batch) -> tuple[dict[str, int], bool]:
    row = service.ledger().status(batch.batch_id, exact=True).batch
    return dict(row.totals), row.totals_exact


def test_values_of_a_dataset_count_once(spark, service, tmp_path, capsys):
    # Given a batch of which some items were acknowledged before, with other values
    batch, group = opened(service, "cents", "rows")
    service.ledger().mark([Done(group[n], {"rows": 1_000_000}) for n in range(0, 640, 7)]).whole()
    first = set(range(0, 640, 7))
    # And a dataset of all items in no order: a hundred come twice, ten failed, and some rows are wrong
    rows: list[tuple[object, ...]] = [(group[n], n, -n, None) for n in range(ITEMS) if n not in (71, 72, 73)]
    rows = [(item, n, cents, "torn" if 100 <= n < 110 else None) for item, n, cents, _ in rows]
    rows += [rows[at] for at in range(1_000, 1_100)]
    rows += [(group[73], 1, 0, None), (group[73], 2, 0, None), (group[71], 2**53 + 1, 0, None)]
    rows += [(group[72], 5, None, None), ("nonsense", 5, 5, None), (None, 5, 5, None)]
    random.Random(5).shuffle(rows)
    item, rows_, cents, reason = zip(*rows, strict=True)
    folder = written(tmp_path / "acks", item=item, rows=rows_, cents=cents, reason=reason)
    arguments = ["--input", folder, "--work", str(tmp_path / "work"), "--totals", "rows,cents"]
    # When the job runs, and runs again
    codes = [JOB.main(arguments), JOB.main(arguments)]
    # Then each item that came first has brought its values once, and the two that are rejects nothing
    told, again = (json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{"))
    assert codes == [0, 0]
    rejects = {"conflicting": 2, "duplicate": 100, "malformed": 2, "null": 1}
    assert (told["rejects"], told["distinct"], told["failed"]) == (rejects, ITEMS - 12, 10)
    assert (told["ranged"], told["first"], again["first"]) == (0, ITEMS - 2 - len(first), 0)
    named = [n for n in range(ITEMS) if n not in (71, 72, 73)]
    assert told["totals"] == {"rows": sum(named) + 5, "cents": -sum(named)}
    fresh = [n for n in named if n not in first]
    expected = {"cents": -sum(fresh), "rows": sum(fresh) + 5 + 1_000_000 * len(first)}
    assert totals_of(service, batch) == (expected, True)
    # And a word of 64 items is one write, whatever its items bring
    assert told["words"] == -(-ITEMS // 64)
    assert service.ledger().pending(batch.batch_id, 0, ITEMS) == {71, 73}
    service.ledger().mark([group[73], group[71]]).whole()
    row = service.ledger().status(batch.batch_id).batch
    assert (row.state, dict(row.totals), row.totals_exact) == (State.COMPLETE, expected, True)


def test_tasks_that_die_half_way_add_nothing_twice(spark, service, tmp_path):
    # Given whole words of items with values, and tasks that die twice after half of their writes
    batch, _ = opened(service, "rows")
    rows = spark.range(ITEMS).selectExpr("id AS ordinal", "id + 1 AS rows")
    dying = faults.DyingService.of(service, tmp_path / "deaths")

    work = str(tmp_path / "work")
    done = acknowledge(
        rows, dying, work=work, batch_id=batch.batch_id, totals=["rows"], max_writes_per_second=400
    )
    # Then the sum is exact, though nothing was lifted above level 0
    assert faults.happened(tmp_path / "deaths") == faults.dying_of("mark")
    assert (done.ok, done.ranged, done.completed) == (True, 0, 1)
    assert totals_of(service, batch) == ({"rows": ITEMS * (ITEMS + 1) // 2}, True)


def test_only_words_of_batches_without_totals_are_lifted(spark, service, tmp_path):
    # Given all items of a batch with totals, and of one without
    summed, _ = opened(service, "rows", items=4_096)
    plain, _ = opened(service, items=4_096)
    ids = f"IF(id < 4096, {summed.batch_id}, {plain.batch_id})"
    rows = spark.range(2 * 4_096).selectExpr(
        f"{ids} AS batch_id", "id % 4096 AS ordinal", "IF(id < 4096, 2, NULL) AS rows"
    )

    done = acknowledge(rows, service, work=str(tmp_path / "work"), totals=["rows"])
    # Then one is written word by word, the other at its root
    assert (done.first, done.ranged, done.words, done.completed) == (4_096, 4_096, 64 + 1, 2)
    assert totals_of(service, summed) == ({"rows": 2 * 4_096}, True)


def test_values_are_read_from_text(spark, service, tmp_path, capsys):
    # Given a value, none, one that is no number, and one as text
    _, group = opened(service, "rows", items=10)
    values: list[object] = [812, None, "many", "-3"]
    file = tmp_path / "acks.jsonl"
    file.write_text("\n".join(json.dumps({"item": group[n], "rows": one}) for n, one in enumerate(values)))
    base = ["--input", str(file), "--work", str(tmp_path / "work")]
    # When the job reads them, and when it is asked for a column that is not there
    codes = [JOB.main([*base, "--totals", name]) for name in ("rows", "bytes")]
    # Then what is a number counts, and a total without a column is refused
    told, refused = (json.loads(line) for line in capsys.readouterr().out.splitlines() if line[:1] == "{")
    assert codes == [0, 3]
    assert (told["distinct"], told["rejects"], told["totals"]) == (3, {"malformed": 1}, {"rows": 809})
    assert (refused["error"], "bytes" in refused["detail"]) == ("invalid-request", True)
