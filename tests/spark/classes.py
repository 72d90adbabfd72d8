"""Files that make the JVMs of the tests fast; made once, by a program that does a little of what tests do.

Spark's classes, read and checked, which is the larger half of a JVM's start: Java keeps them in an archive
(class data sharing). And ``Files``, a file system, in a jar. ``python -m tests.spark.classes FOLDER`` makes
both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pyspark
from pyspark.sql import SparkSession

from fanin.local import locks
from fanin.spark.runtime.session import session

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = "JDK_JAVA_OPTIONS"
ARCHIVE = Path(sys.prefix, f".spark-{pyspark.__version__}.jsa")
JAR = ARCHIVE.with_suffix(".jar")
QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def environment() -> dict[str, str]:
    """For every JVM; those of Spark use what is here, and it is made if it is not there.

    To the archive any other program, any other Java and any other Spark find that it is not theirs, and do
    without. The jar is the last on Spark's path, or it would be another program.
    """
    with locks.exclusive(ARCHIVE.with_suffix(".lock")):
        if not (ARCHIVE.exists() and JAR.exists()):
            with TemporaryDirectory() as folder:
                draft = Path(folder, "classes.jsa")
                around = {**os.environ, OPTIONS: f"-XX:ArchiveClassesAtExit={draft} {QUIET}"}
                command = [sys.executable, "-m", "tests.spark.classes", folder]
                subprocess.run(command, cwd=ROOT, env=around, check=True, capture_output=True)  # noqa: S603
                ARCHIVE.write_bytes(draft.read_bytes() if draft.exists() else b"")
                JAR.write_bytes(Path(folder, "files.jar").read_bytes())
    # Programs of some minutes gain nothing from the better of Java's two compilers. Without it Java has room
    # for a fifth of the compiled code only, and compiles no more when that is full.
    options = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    options += f" -XX:SharedArchiveFile={ARCHIVE} -Xshare:auto {QUIET}"
    return {OPTIONS: options, "SPARK_DIST_CLASSPATH": str(JAR)}


def main(folder: str) -> None:
    spark = session("classes", {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    compiled(spark, Path(__file__).with_name("Files.java"), Path(folder, "files.jar"))
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


def compiled(spark: SparkSession, source: Path, jar: Path) -> None:
    """Compile by the compiler that Spark brings for the code it writes itself; not every Java has one."""
    compiler = spark.sparkContext._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(source.read_text())
    with ZipFile(jar, "w") as made:
        for name, code in dict(compiler.getBytecodes()).items():
            made.writestr(f"{name}.class", bytes(code))


if __name__ == "__main__":
    main(*sys.argv[1:])
