"""Random batches, worked on by the real ledger: the audit says what the ledger says."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bench.spark_audit import audited, wrongly_told
from fanin.domain.acks import Failure
from fanin.spark.audit.report import audit
from tests.spark.tables import FULL, Tables

SIZES = (1, 63, 64, 65, 127, 128, 4095, 4096, 4097, 9000, 64**3, 64**3 + 1, 64**4 + 5)
ENDS = ("open", "close first", "close last", "cancel")


def script(random: Random) -> dict[str, Any]:
    """What happens to one batch; places are fractions, so that they fit any size."""

    def places(most: int) -> list[int]:
        return [random.randrange(10**6) for _ in range(random.randint(0, most))]

    return {
        "sizes": random.choices(SIZES, k=random.randint(1, 2)),
        "singles": places(20),
        "ranges": [(place, random.randrange(10**6)) for place in places(4)],
        "edges": random.random() < 0.5,
        "failures": places(2),
        "end": random.choice(ENDS),
    }


def play(tables: Tables, script: dict[str, Any]) -> int:
    """Work on a batch as the script says; the ledger settles and completes it as it goes."""
    batch, group = tables.batch(script["sizes"][0], closed=False)
    groups = [group, *(tables.ledger.add(batch.batch_id, more) for more in script["sizes"][1:])]
    if script["end"] == "close first":
        tables.ledger.close(batch.batch_id)
    for which, place in enumerate(script["singles"]):
        group = groups[which % len(groups)]
        tables.ledger.ack([group[place % len(group)]])
    for which, (one, other) in enumerate(script["ranges"]):
        group = groups[which % len(groups)]
        low, high = sorted((one * len(group) // 10**6, other * len(group) // 10**6))
        tables.ack(group, (low, min(high + 1, len(group))))
    if script["edges"]:  # all but a few, so that words of all levels become done
        for group in groups:
            tables.ack(group, (0, len(group) // 64 * 64 or 1), (len(group) - 1, len(group)))
    for place in script["failures"]:
        tables.ledger.fail([Failure(groups[-1][place % len(groups[-1])], "broken")])
    if script["end"] == "close last":
        tables.ledger.close(batch.batch_id)
    if script["end"] == "cancel":
        tables.ledger.cancel(batch.batch_id)
    return batch.batch_id


def ranges_of(tables: Tables, batch_id: int) -> list[tuple[int, int]]:
    """All that the ledger says is missing, its pages joined."""
    found: list[tuple[int, int]] = []
    cursor = None
    while True:
        page = tables.ledger.missing(batch_id, cursor=cursor, limit=1000)
        for part in page.ranges:
            if found and found[-1][1] == part.start:
                found[-1] = found[-1][0], part.stop
            else:
                found.append((part.start, part.stop))
        cursor = page.cursor
        if cursor is None:
            return found


def check(spark: SparkSession, folder: Path, seed: int) -> None:
    # Given batches that the ledger has worked on
    random, tables = Random(seed), Tables()  # noqa: S311
    played = [play(tables, script(random)) for _ in range(60)]
    tables.dump()
    missing = {batch_id: ranges_of(tables, batch_id) for batch_id in played}

    # And in some of them a finished word's mark above it is undone
    lost = {_lose(tables, random.randrange(10**6)) for _ in range(20)} - {None}
    assert lost

    # When they are audited
    found = audit(tables.snapshot(spark, folder))
    found.measured.persist()
    findings = found.findings().persist()
    rows = found.batches(findings).collect()
    ranges: dict[int, list[tuple[int, int]]] = {batch_id: [] for batch_id in played}
    for row in found.missing().orderBy("batch_id", "start").collect():
        ranges[row["batch_id"]].append((row["start"], row["stop"]))

    # Then done and missing are the ledger's, and the findings are the losses and no others
    assert ranges == missing
    assert {row["batch_id"]: row["pending"] for row in rows} == {
        batch_id: sum(stop - start for start, stop in parts) for batch_id, parts in missing.items()
    }
    assert {(row["kind"], row["word_id"]) for row in findings.collect()} == {
        ("lost_parent", key) for key in lost
    }
    spark.catalog.clearCache()


def _lose(tables: Tables, place: int) -> str | None:
    """Undo the mark above some leaf that is 0; None if there is none, or it would change what is missing."""
    whole = sorted(key for key, row in tables.words.items() if row["word"]["N"] == "0" and "/0/" in key)
    if not whole:
        return None
    batch, _, number = whole[place % len(whole)].split("/")
    above = f"{batch}/1/{int(number) // 64}"
    if above not in tables.words:
        return None
    row = tables.words[above]
    word, bit = int(row["word"]["N"]), 1 << int(number) % 64
    if word & bit or word | bit == FULL or _shadowed(tables, batch, int(number) // 64, 1):
        return None
    others = [cleared for cleared in row["done"]["NS"] if int(cleared) != int(number) % 64]
    tables.words[above] = {**row, "word": {"N": str(word | bit)}, "done": {"NS": others}}
    return f"{batch}/0/{number}"


def _shadowed(tables: Tables, batch: str, number: int, level: int) -> bool:
    """Whether a bit above the word is clear, or it was done itself, so that its loss shows elsewhere."""
    if tables.words[f"{batch}/{level}/{number}"]["word"]["N"] == "0":
        return True
    closed = tables.memory.batches._rows[int(batch)]
    if closed.closed_at is not None and number == tables.memory.tree.last(level, closed.items):
        return True
    for above in range(level + 1, 7):
        row = tables.words.get(f"{batch}/{above}/{number >> 6 * (above - level)}")
        if row and not int(row["word"]["N"]) >> (number >> 6 * (above - level - 1) & 63) & 1:
            return True
    return False


def test_the_audit_agrees_with_the_ledger(spark: SparkSession, tmp_path: Path) -> None:
    # Without ANSI mode, as on EMR 7; the other tests of the audit run with it
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        check(spark, tmp_path, 1)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 27))
def test_the_audit_agrees_with_the_ledger_for_many_seeds(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    check(spark, tmp_path, seed)


@pytest.mark.soak
def test_ten_million_words_are_audited_as_planted(spark: SparkSession) -> None:
    # Given an export of 10,000,000 words of level 0, with three kinds of findings planted in it
    # When it is audited
    seconds, summary, world = audited(spark, 10_000_000)

    # Then each is found, none is invented, and every item is counted
    assert wrongly_told(summary, world) == 0, (seconds, summary)
    assert summary["words"] > 10_000_000
