"""Files that make the JVMs of the tests fast; made once.

- An archive (class data sharing) of Spark's classes, read and checked: the larger half of a JVM's start.
- ``Files``, a file system, in a jar that is the last on Spark's path.
- A jar before all others, with a ``SparkClosureCleaner`` that checks nothing, and with few of Hadoop's 1,500
  default values, which are copied for each step of a plan and sent with each task: with those that say which
  class is a file system. The code that reads the others has the same defaults.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import pyspark
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from fanin.local import locks
from fanin.spark.runtime.session import session

ROOT = Path(__file__).resolve().parents[2]
JAVA = Path(__file__).with_name("java")
OPTIONS = "JDK_JAVA_OPTIONS"
CHANGED = max(file.stat().st_mtime for file in (Path(__file__), *JAVA.iterdir()))
ARCHIVE = Path(sys.prefix, f".spark-{pyspark.__version__}.jsa")
FIRST = ARCHIVE.with_suffix(".first.jar")
LAST = ARCHIVE.with_suffix(".last.jar")
QUIET = "-Xlog:disable -Xlog:all=error:stderr"
DEFAULTS = ("core", "hdfs", "mapred", "yarn")
"""Hadoop's files of default values."""
CLASS = re.compile(r"fs\..*impl")
"""Names of defaults that are nowhere else."""


def environment() -> dict[str, str]:
    """For every JVM; those of Spark use what is here, and it is made if it is not there.

    To the archive any other program, any other Java and any other Spark find that it is not theirs, and do
    without. With other jars it would be another program.
    """
    first = f"-Xbootclasspath/a:{FIRST}"
    last = {"SPARK_DIST_CLASSPATH": str(LAST)}
    with locks.exclusive(ARCHIVE.with_suffix(".lock")):
        if not all(file.exists() and file.stat().st_mtime > CHANGED for file in (ARCHIVE, FIRST, LAST)):
            _run("compiled", {OPTIONS: QUIET})
            # Another file, since Java reads from the archive while it runs; and never a part of one.
            draft = ARCHIVE.with_suffix(".draft")
            draft.unlink(missing_ok=True)
            _run("used", {OPTIONS: f"{first} -XX:ArchiveClassesAtExit={draft} {QUIET}", **last})
            draft.touch()
            draft.replace(ARCHIVE)
    # Programs of some minutes gain nothing from the better of Java's two compilers. Without it Java has room
    # for a fifth of the compiled code only, and compiles no more when that is full.
    options = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=512m"
    options += f" {first} -XX:SharedArchiveFile={ARCHIVE} -Xshare:auto {QUIET}"
    return {OPTIONS: options, **last}


def _run(function: str, environment: Mapping[str, str]) -> None:
    """Call a function of this module in a process, and so in a JVM, of its own."""
    command = [sys.executable, "-c", f"from tests.spark import classes; classes.{function}()"]
    around = {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)


def compiled() -> None:
    """Write the jars, by the compiler that Spark brings for its own code; not every Java has one."""
    gateway = launch_gateway()
    first = {f"{name}-default.xml": "<configuration/>" for name in DEFAULTS} | {
        "core-default.xml": _classes()
    }
    for jar, source, files in ((FIRST, "SparkClosureCleaner$.java", first), (LAST, "Files.java", {})):
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook((JAVA / source).read_text())
        with ZipFile(jar, "w") as made:
            for name, code in dict(compiler.getBytecodes()).items():
                made.writestr(f"{name.replace('.', '/')}.class", bytes(code))
            for name, text in files.items():
                made.writestr(name, text)
    gateway.shutdown()


def _classes() -> str:
    """The defaults of Hadoop that name classes of file systems."""
    (client,) = Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
    with ZipFile(client) as jar:
        defaults = ET.fromstring(jar.read("core-default.xml"))
    for one in list(defaults):
        if not CLASS.fullmatch(one.findtext("name") or ""):
            defaults.remove(one)
    return ET.tostring(defaults, "unicode")


def used() -> None:
    """Do a little of what tests do, so that its classes are in the archive."""
    spark = session("classes", {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    with TemporaryDirectory() as folder:
        _use(spark, folder)
    spark.stop()


def _use(spark: SparkSession, folder: str) -> None:
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
