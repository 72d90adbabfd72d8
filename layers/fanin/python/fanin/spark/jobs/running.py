"""What all jobs share: arguments, a session, a summary in JSON, an exit code."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fanin.domain.totals import check_names
from fanin.errors import FaninError, InvalidRequest, TooManyRejects
from fanin.spark.runtime import reach
from fanin.spark.runtime.failures import root_cause
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.session import quiet_session

Summary: TypeAlias = dict[str, Any]

OK: Final = 0
WRONG: Final = 1
"""The job ran to its end, and found that something is wrong; the summary's ``ok`` is false."""
USAGE: Final = 2
FAILED: Final = 3
"""The job could not run to its end; start it again."""
INTERRUPTED: Final = 128 + signal.SIGINT
"""Somebody stopped the job with Ctrl-C; start it again. Shells report a signal as 128 and its number."""


def names_of_totals(text: str) -> tuple[str, ...]:
    """The value of ``--totals``: names of totals, divided by commas.

    Raises:
        ArgumentTypeError: they are not at most four different names of totals.
    """
    try:
        return check_names([name.strip() for name in text.split(",")])
    except InvalidRequest as error:
        raise argparse.ArgumentTypeError(str(error)) from None


MOST_DETAIL: Final = 2_000
"""Most characters of an error in the summary; stderr has all of it."""


def _nothing(_options: argparse.Namespace) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Job:
    """One job.

    Attributes:
        name: its module in this package, with dashes for underscores.
        about: text for its help.
        arguments: adds its arguments to a parser.
        run: does the work; the summary's ``ok`` decides the exit code.
        settings: Spark properties of its session.
        output: the argument that names a folder of the job, where the summary is written as well.
        needs: gives the services that it calls, name → URL; unless all can be reached, it does not begin.
    """

    name: str
    about: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[SparkSession, argparse.Namespace], Summary]
    settings: Mapping[str, str] = field(default_factory=dict)
    output: str | None = None
    needs: Callable[[argparse.Namespace], Mapping[str, str]] = _nothing

    def parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m fanin.spark.jobs.{self.name.replace('-', '_')}",
            description=self.about,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.arguments(parser)
        return parser

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the job; the last line that it prints is its summary, as JSON.

        A job that ran to its end also writes it to its folder, as ``summary.json``.

        Returns:
            The exit code: 0 if all is well, 1 if something is wrong, 3 if the job could not run to its end,
            130 if it was interrupted.

        Raises:
            SystemExit: with the exit code 2 if the arguments are wrong.
        """
        options = self.parser().parse_args(arguments)
        began = time.monotonic()
        spark = None
        try:
            reach.require(self.needs(options))
            with quiet_session(f"fanin {self.name}", self.settings) as spark:
                summary = self.run(spark, options)
        except TooManyRejects as error:
            told = {"rejects": error.rejects, "rows": error.rows}
            summary = {"ok": False, **told, "error": error.code, "detail": str(error)}
            code = WRONG
        except FaninError as error:
            summary = {"ok": False, "error": error.code, "detail": str(error)}
            code = FAILED
        except (PySparkException, Py4JError) as error:
            traceback.print_exc()
            summary = {"ok": False, "error": "spark-failed", "detail": root_cause(error)[:MOST_DETAIL]}
            code = FAILED
        except KeyboardInterrupt:
            detail = "stopped with Ctrl-C; start the same command again"
            summary = {"ok": False, "error": "interrupted", "detail": detail}
            code = INTERRUPTED
        except Exception as error:  # noqa: BLE001  whoever waits for a summary gets one, whatever happened
            traceback.print_exc()
            detail = f"{type(error).__name__}: {error}"
            summary = {"ok": False, "error": "unexpected", "detail": detail[:MOST_DETAIL]}
            code = FAILED
        else:
            code = OK if summary["ok"] else WRONG
        told = {"job": self.name, **summary, "seconds": round(time.monotonic() - began, 3)}
        line = json.dumps(_rejects_first(told))
        if spark is not None and code in (OK, WRONG) and self.output:
            _write(spark, getattr(options, self.output), line)
        _explain(self.name, summary, self._rejects(options))
        print(line)
        return code

    def _rejects(self, options: argparse.Namespace) -> str | None:
        """The folder of the rows that were left out; None if the job has none."""
        if self.output is None:
            return None
        named: str | None = getattr(options, "rejects", None)
        return named or f"{getattr(options, self.output).rstrip('/')}/rejects"


def _rejects_first(summary: Summary) -> Summary:
    """The summary in an order in which what was left out is not overlooked."""
    first = ("job", "ok", "error", "batch_id", "rejects", "rejected", "outliers")
    return {name: summary[name] for name in (*(one for one in first if one in summary), *summary)}


def _explain(job: str, summary: Summary, folder: str | None) -> None:
    """Say on stderr what people should look at."""
    rejects = summary.get("rejects") or summary.get("rejected") or {}
    if "detail" in summary:
        print(f"{job}: {summary['detail']}", file=sys.stderr)
    elif rejects:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(rejects.items()))
        count = sum(rejects.values())
        told = f"{job}: {count} {'row is a reject' if count == 1 else 'rows are rejects'}: {reasons}"
        print(f"{told}. Look at {folder}" if folder else told, file=sys.stderr)


def _write(spark: SparkSession, folder: str, line: str) -> None:
    """Write the summary beside what the job made; a job that is done does not fail because of it."""
    try:
        Folder(spark, folder).write("summary.json", f"{line}\n")
    except Py4JError as error:
        print(f"the summary is not in {folder}: {root_cause(error)}", file=sys.stderr)
