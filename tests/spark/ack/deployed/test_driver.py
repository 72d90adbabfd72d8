"""Acknowledging in bulk on the stack: every item is done once, whatever dies or is repeated."""

import random

import pytest

from fanin.domain.batch import OpenBatch, State
from fanin.errors import InvalidRequest
from fanin.spark.ack.driver import QUOTA, WARM, acknowledge, forecast
from fanin.spark.ack.ledger_writes import Acknowledged
from fanin.spark.ack.stream import ack_stream
from fanin.spark.inputs.formats import Dataset
from tests.spark import faults
from tests.spark.datasets import promise, undecodable
from tests.spark.evaluations import Evaluations
from tests.spark.items import ITEMS, filled, written


def test_tasks_that_die_half_way_change_nothing(spark, service, tmp_path):
    # Given half of the items, in no order, and tasks that die twice after half of their writes
    batch, group = filled(service)
    chosen = random.Random(2).sample(range(ITEMS), ITEMS // 2)
    folder = written(tmp_path / "acks", item=[group[n] for n in chosen])
    deaths = tmp_path / "deaths"
    dying = faults.DyingService.of(service, deaths)
    # When they are acknowledged
    summary = acknowledge(Dataset(folder), dying, work=tmp_path / "work", max_writes_per_second=400).summary()
    # Then it was as if nothing had happened
    assert faults.happened(deaths) == faults.dying_of("mark")
    assert (summary["ok"], summary["distinct"], summary["rejects"]) == (True, ITEMS // 2, {})
    pending = service.ledger().pending(batch.batch_id, 0, ITEMS)
    assert pending == set(range(ITEMS)) - set(chosen)


@pytest.mark.parametrize("way", ["acknowledge", "totals", "stream", "small stream"])
def test_rows_that_are_not_the_same_twice_are_evaluated_once(spark, service, tmp_path, way):
    # Given rows of which half fail their item when they are first evaluated, and the others at the next time
    ledger, told = service.ledger(), list[Acknowledged]()
    totals = ["cents"] if way == "totals" else []
    batch = ledger.open(OpenBatch(totals=tuple(totals)))
    group = ledger.add(batch.batch_id, 40)
    ledger.close(batch.batch_id)
    rows = spark.createDataFrame([(n, group[n], 1) for n in range(40)], "n int, item string, cents long")
    evaluations = Evaluations(tmp_path / "evaluations")
    small = way == "small stream"
    flaky = evaluations.counted(
        rows.repartition(3), "n", "item" if small else "reason",
        (lambda n, number: group[n] if not number else "lost")
        if small
        else (lambda n, number: "too late" if (n + number) % 2 else None),
    ).drop("n")  # fmt: skip
    # When they are acknowledged
    if "stream" in way:
        handler = ack_stream(service, work=f"{tmp_path}/work", on_done=lambda _, done: told.append(done))
        handler(flaky, 0)
    else:
        told.append(acknowledge(flaky, service, work=f"{tmp_path}/work", totals=totals))
    # Then each row was evaluated once, and its item is done or has failed
    assert evaluations.times == {str(n): 1 for n in range(40)}
    failed = 0 if small else 20
    sums = {"in": 40, "acknowledged": 40 - failed, "failed": failed, "repeated": 0, "rejected": 0}
    assert (told[0].ok, told[0].summary()["accounted"]) == (True, sums)
    found = ledger.status(batch.batch_id).batch
    assert (found.state, found.failed) == (State.COMPLETE, failed)


def test_rows_that_only_acknowledge_are_evaluated_once_and_read_from_what_was_written(
    spark, service, tmp_path
):
    # Given rows that name no item when they are evaluated again
    _, group = filled(service)
    evaluations = Evaluations(tmp_path / "evaluations")
    names = evaluations.counted(
        spark.range(0, 300, 1, 3), "id", "item", lambda n, number: None if number else group[n]
    )

    done = acknowledge(names, service, work=str(tmp_path / "work"))
    # Then what was merged was read from pages that were written, and not from a shuffle that may be made anew
    assert (done.ok, done.rows, done.distinct, done.rejects) == (True, 300, 300, {})
    assert set(evaluations.times.values()) == {1}
    assert (tmp_path / "work" / "pages" / "_SUCCESS").exists()


def test_a_reason_or_an_id_that_is_not_utf8_is_a_reject(spark, service, tmp_path):
    # Given reasons of which one is Latin-1, and a failed item whose id is
    _, group = filled(service)
    latin = "Größe".encode("latin-1")
    items = undecodable(*(group[n].encode() for n in range(5)), latin + b":5")
    columns = {"item": items, "reason": undecodable(None, b"torn", latin, None, None, b"torn")}
    folder = written(tmp_path / "acks", **columns)

    for rows in (spark.read.parquet(folder), Dataset(folder)):
        done = acknowledge(rows, service, work=tmp_path / "work")
        # Then the two are rejects that can be read, and the others are done or have failed
        assert (done.distinct, done.failed, sum(done.rejects.values())) == (3, 1, 2)
        assert done.ok
        left = spark.read.parquet(str(tmp_path / "work" / "rejects")).toPandas()
        assert (group[2], "malformed", "the reason has bytes that are not UTF-8") in set(
            left.itertuples(index=False)
        )


def test_a_footer_that_promises_other_rows_acknowledges_nothing(spark, service, tmp_path):
    batch, _ = filled(service)
    (tmp_path / "acks").mkdir()
    promise(tmp_path / "acks" / "1.parquet", rows=1_000, promised=1_200, column="ordinal")

    with pytest.raises(InvalidRequest, match="says that it has 1200 rows"):
        acknowledge(
            Dataset(tmp_path / "acks"),
            work=tmp_path / "work",
            batch_id=str(batch.batch_id),
            max_writes_per_second=200,
        )

    assert service.ledger().pending(batch.batch_id, 0, ITEMS) == set(range(ITEMS))


def test_a_forecast_writes_nothing_and_looks_at_the_table(spark, service, tmp_path):
    # Given items of two words
    batch, group = filled(service)
    rows = spark.createDataFrame([(group[n],) for n in (1, 2, 70)], "item string")
    # When it is said what they would write
    found = forecast(rows, service, work=str(tmp_path / "work"), max_writes_per_second=10_000)
    # Then it is two words, at the rate that was asked, and beginning with what the table takes at once
    assert (found.rows, found.words) == (3, 2)
    assert (found.writes_per_second, found.warm_writes_per_second) == (10_000, WARM)
    assert forecast(rows, service, work=str(tmp_path / "work")).writes_per_second == QUOTA
    assert found.hours == pytest.approx(found.writes / WARM / 3_600)
    # And nothing was written
    assert service.ledger().pending(batch.batch_id, 0, ITEMS) == set(range(ITEMS))
