"""Acknowledging in bulk on the stack: every item is done once, whatever dies or is repeated."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.spark.ack.driver import acknowledge, forecast
from fanin.spark.ack.forecast import QUOTA, WARM
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.runtime.service import Service
from tests.spark import faults
from tests.spark.items import ITEMS, filled, written

pytestmark = pytest.mark.emulator


def test_tasks_that_die_half_way_change_nothing(
    spark: SparkSession, service: Service, tmp_path: Path
) -> None:
    # Given half of the items, in no order, and tasks that die twice after half of their writes
    batch, group = filled(service)
    chosen = random.Random(2).sample(range(ITEMS), ITEMS // 2)  # noqa: S311
    folder = written(tmp_path / "acks", item=[group[n] for n in chosen])
    deaths = tmp_path / "deaths"
    dying = faults.DyingService.of(service, deaths)

    # When they are acknowledged
    work = str(tmp_path / "work")
    rows, files = spark.read.parquet(folder), ParquetFiles(folder)
    summary = acknowledge(rows, dying, work=work, files=files).summary()

    # Then it was as if nothing had happened
    assert faults.happened(deaths) == faults.dying_of("mark")
    assert (summary["ok"], summary["distinct"], summary["rejects"]) == (True, ITEMS // 2, {})
    pending = service.ledger().pending(batch.batch_id, 0, ITEMS)
    assert pending == set(range(ITEMS)) - set(chosen)


def test_a_forecast_writes_nothing_and_looks_at_the_table(
    spark: SparkSession, service: Service, tmp_path: Path
) -> None:
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
