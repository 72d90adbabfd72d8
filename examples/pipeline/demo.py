"""The whole pipeline on real flights, on the local stack: fan out, acknowledge, audit, report.

    make demo-spark

The functions are those that go to AWS, deployed to an emulator of this demo's own, which is stopped at the
end, also by Ctrl-C. The jobs are those that run on EMR, in one Spark session of this process.
"""

import argparse
import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from rich.console import Console

from examples.deployed import deployed
from examples.fleet.analytics import job as report
from examples.pipeline.consumers import Consumers, Events
from examples.pipeline.flights import ROWS, unpack
from examples.pipeline.quiet import quiet_children
from examples.pipeline.summary import Outcome, summary
from examples.pipeline.vehicles import Vehicle, Vehicles
from fanin import Tracker
from fanin.local import CHECKOUT, Stack, Steps, environment
from fanin.spark import Job, Summary, quiet_session
from fanin.spark.jobs import ack, audit, fan_out

HOME: Final = CHECKOUT / ".fanin" / "demo-spark"
ALL: Final = "all"
CARRIER: Final = "EV"
"""Whose flights are sent by default: 54,173, the second most. All of them take longer than one waits for."""
STORY: Final = """\
This demo works on {what} that left New York in 2013. It is going to

 1. start an emulator of AWS and deploy fanin to it,
 2. fan the flights out from Spark: each is a message, and an item of one batch,
 3. let four consumers take them, of which two acknowledge, and two only note what they did,
 4. mark what these noted with the ack job, twice, and see the batch complete once,
 5. recompute all batches with the audit job,
 6. report on the year, and ask every aircraft, some of which are dead,
 7. check twelve promises, and stop the emulator.

Nothing leaves this machine. Ctrl-C stops everything.
"""
LOG: Final = Path(__file__).with_name("log4j2.properties")
DEAD: Final = 4
"""Aircraft of each carrier that do not answer; of one of them even the queue is gone."""
LEAST: Final = 10
"""Fewest seconds that aircraft get to answer."""
ANSWERS: Final = 50
"""Aircraft that answer in a second, at least: their consumers share this process, and the emulator."""
LONGEST: Final = 120
"""Most seconds until the batch ends; for the queue to empty, a second more for each 500 flights."""

Say = Callable[[str], None]


def run(stack: Stack, root: Path, carriers: list[str], say: Say) -> Outcome:
    """Run the pipeline.

    The environment must name the stack, as ``fanin.local.environment`` gives it.

    Args:
        stack: fanin.
        root: folder for all files.
        carriers: whose flights to send; those of all if there are none.
        say: called with each step.

    Raises:
        TimeoutError: the queue does not empty, or the batch does not end.
    """
    shutil.rmtree(root / "data", ignore_errors=True)
    settings = {
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Dlog4j2.configurationFile={LOG.as_uri()}",
    }
    with ExitStack() as until_the_end:
        with quiet_children():
            spark = until_the_end.enter_context(quiet_session("fanin demo", settings))
        return _play(spark, stack, root / "data", carriers, say)


def _play(spark: SparkSession, stack: Stack, folder: Path, carriers: list[str], say: Say) -> Outcome:
    tracker = Tracker.from_env()

    def job(which: Job, *arguments: str) -> Summary:
        return which.run(spark, which.parser().parse_args(arguments))

    flights = sample(spark, unpack(folder), carriers, folder / "flights")
    rows = flights.count()
    with Events(stack.bus) as events:
        say(f"fan out {rows:,} flights")
        with Consumers(tracker, stack.work_queue_url) as consumers:
            to = ("--queue", stack.work_queue_url, "--staging", f"{folder}/staging")
            sent = job(fan_out.JOB, "--input", f"{folder}/flights", *to, "--user-key", "flights")
            consumers.handled(rows, LONGEST + rows / 500)
        say("consumers acknowledged some of them; the ack job marks the others, and runs twice")
        left = spark.createDataFrame(consumers.left(), "item string, reason string").repartition(4)
        left.write.parquet(f"{folder}/acks")
        acked, again = (
            job(ack.JOB, "--input", f"{folder}/acks", "--work", f"{folder}/{work}")
            for work in ("ack", "ack-again")
        )
        tracker.wait(sent["batch_id"], timeout=LONGEST)
        heard = events.of(sent["batch_id"], LONGEST)
    say("the batch is complete; audit all tables")
    audited = job(audit.JOB, "--scan", "--output", f"{folder}/audit", "--segments", "4")
    vehicles = Vehicles(tracker, payload=lambda name: {"status": "ok", "vehicle": name})
    crew = register(vehicles, flights)
    timeout = max(LEAST, vehicles.pace(), len(crew.living) // ANSWERS)
    arguments = (
        *("--trips", f"{folder}/flights", "--trips-are", "flights", "--output", f"{folder}/report"),
        *("--from", "2013-W01", "--to", "2013-W52", "--title", "New York flights, 2013"),
        *("--timeout", str(timeout), "--max-retries", "0"),
    )
    dead = len(crew.silent) + len(crew.scrapped)
    say(f"{len(crew.living)} aircraft answer, {dead} are dead; the report gives them {timeout} s")
    with vehicles.answering(crew.living):
        reported, repeated = (job(report.JOB, *arguments) for _ in range(2))
    spark.stop()
    return Outcome(
        rows=rows,
        sent=sent,
        consumers=consumers.counts,
        acked=acked,
        again=again,
        progress=tracker.status(sent["batch_id"], exact=True),
        verdict=tracker.verify(sent["batch_id"]),
        events=heard,
        audited=audited,
        reported=reported,
        repeated=repeated,
        living=len(crew.living),
        silent=len(crew.silent),
        scrapped=len(crew.scrapped),
        unknown=len(crew.unknown),
        asked=Counter({name: times for name, times in vehicles.asked.items() if name in crew.living}),
    )


def sample(spark: SparkSession, file: Path, carriers: list[str], folder: Path) -> DataFrame:
    """The flights of some carriers, or of all, as Parquet."""
    rows = spark.read.csv(str(file), header=True)
    if carriers:
        rows = rows.where(F.col("carrier").isin(carriers))
    rows.repartition(4).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


class Crew(NamedTuple):
    """Aircraft that answer, that do not, whose channel is gone, and that nobody registered."""

    living: list[Vehicle]
    silent: list[Vehicle]
    scrapped: list[Vehicle]
    unknown: list[Vehicle]


def register(vehicles: Vehicles, flights: DataFrame) -> Crew:
    """Register the aircraft of each carrier but its last one; its first ones are dead."""
    crew = Crew([], [], [], [])
    pairs = flights.where("air_time <> 'NA'").select("carrier", "tailnum").distinct()
    for carrier, rows in groupby(pairs.orderBy("carrier", "tailnum").collect(), lambda row: row["carrier"]):
        aircraft = [(carrier, row["tailnum"]) for row in rows]
        vehicles.register(carrier, [name for _, name in aircraft[:-1]])
        vehicles.scrap(aircraft[0])
        crew.scrapped.append(aircraft[0])
        crew.silent.extend(aircraft[1:DEAD])
        crew.living.extend(aircraft[DEAD:-1])
        crew.unknown.extend(aircraft[-1:])
    return crew


def main(arguments: Sequence[str], step: Steps) -> bool:
    """Run the demo; whether every promise held."""
    parser = argparse.ArgumentParser(
        description="The Spark pipeline on the flights that left New York in 2013."
    )
    parser.add_argument(
        "--carriers",
        default=CARRIER,
        help=f"carriers of the flights, two letters each, like AS,F9,HA, or {ALL}; by default {CARRIER}",
    )
    parser.add_argument("--root", type=Path, default=HOME, help="folder for all files")
    options = parser.parse_args(arguments)
    console = Console()
    carriers = [] if options.carriers == ALL else options.carriers.split(",")
    what = f"the flights of {', '.join(carriers)}" if carriers else f"all {ROWS:,} flights"
    console.print(STORY.format(what=what), highlight=False, soft_wrap=True)
    with deployed(options.root, step) as stack:
        os.environ.update(environment(stack))
        outcome = run(stack, options.root, carriers, step)
    return summary(outcome, console)
