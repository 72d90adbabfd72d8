"""Spark's classes, read and checked once for all JVMs of the tests, of whose start that is the larger half.

Java keeps them in an archive (class data sharing), which is made by a program that ends:
``python -m tests.spark.classes FOLDER`` does a little of all that the tests do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark

from fanin.local import locks
from fanin.spark.session import session

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = "JDK_JAVA_OPTIONS"
ARCHIVE = Path(sys.prefix, f".spark-{pyspark.__version__}.jsa")
QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def options() -> str:
    """Options for every JVM, by which those of Spark use the archive; it is made if there is none.

    Any other program, any other Java and any other Spark find that it is not theirs and do without.
    """
    with locks.exclusive(ARCHIVE.with_suffix(".lock")):
        if not ARCHIVE.exists():
            with TemporaryDirectory() as folder:
                draft = Path(folder, "classes.jsa")
                around = {**os.environ, OPTIONS: f"-XX:ArchiveClassesAtExit={draft} {QUIET}"}
                command = [sys.executable, "-m", "tests.spark.classes", folder]
                subprocess.run(command, cwd=ROOT, env=around, check=True, capture_output=True)  # noqa: S603
                ARCHIVE.write_bytes(draft.read_bytes() if draft.exists() else b"")
    # Programs of some seconds gain nothing from the better of Java's two compilers.
    return f"-XX:SharedArchiveFile={ARCHIVE} -Xshare:auto -XX:TieredStopAtLevel=1 {QUIET}"


def main(folder: str) -> None:
    spark = session("classes", {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    rows = spark.range(100).selectExpr("id", "id % 3 AS kind", "to_json(struct(id)) AS body")
    for written in (rows.write.parquet, rows.write.json, rows.write.csv):
        written(f"{folder}/{written.__name__}")
    read = spark.read.parquet(f"{folder}/parquet")
    for frame in (
        spark.read.schema(rows.schema).json(f"{folder}/json"),
        spark.read.csv(f"{folder}/csv"),
        spark.read.text(f"{folder}/json"),
        read.join(read.groupBy("kind").count(), "kind").orderBy("id"),
        read.selectExpr("row_number() OVER (PARTITION BY kind ORDER BY id) AS place"),
        read.repartition(3, "id").mapInArrow(lambda pages: pages, read.schema),
        spark.createDataFrame([(1, "a")], "n INT, s STRING").localCheckpoint(),
    ):
        frame.collect()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
