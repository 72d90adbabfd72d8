"""What all jobs share: arguments, a session, a summary in JSON, an exit code."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fanin.domain.totals import check_names
from fanin.errors import FaninError, InvalidRequest
from fanin.spark.runtime import reach
from fanin.spark.runtime.formats import DatasetFormat
from fanin.spark.runtime.session import session

Summary: TypeAlias = dict[str, Any]

OK: Final = 0
WRONG: Final = 1
"""The job ran to its end, and found that something is wrong; the summary's ``ok`` is false."""
USAGE: Final = 2
FAILED: Final = 3
"""The job could not run to its end; start it again."""

FORMAT: Final[dict[str, Any]] = {
    "type": DatasetFormat,
    "choices": list(DatasetFormat),
    "help": "of the input; by default the one that its suffix names, or else parquet",
}
"""The argument ``--format``."""


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
        needs: gives the services that it calls, name → URL; unless all can be reached, it does not begin.
    """

    name: str
    about: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[SparkSession, argparse.Namespace], Summary]
    settings: Mapping[str, str] = field(default_factory=dict)
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

        Returns:
            The exit code: 0 if all is well, 1 if something is wrong, 3 if the job could not run to its end.

        Raises:
            SystemExit: with the exit code 2 if the arguments are wrong.
        """
        options = self.parser().parse_args(arguments)
        began = time.monotonic()
        try:
            reach.require(self.needs(options))
            summary = self.run(session(f"fanin {self.name}", self.settings), options)
        except FaninError as error:
            summary = {"ok": False, "error": error.code, "detail": str(error)}
            code = FAILED
        except (PySparkException, Py4JError) as error:
            traceback.print_exc()
            summary = {"ok": False, "error": "spark-failed", "detail": _root(error)[:MOST_DETAIL]}
            code = FAILED
        else:
            code = OK if summary["ok"] else WRONG
        if code == FAILED:
            print(f"{self.name}: {summary['detail']}", file=sys.stderr)
        seconds = round(time.monotonic() - began, 3)
        print(json.dumps({"job": self.name, **summary, "seconds": seconds}))
        return code


def _root(error: PySparkException | Py4JError) -> str:
    """The root cause of an error; Java has it at the end of a chain."""
    if not isinstance(error, Py4JJavaError):
        return str(error).strip()
    cause = error.java_exception
    try:
        while (below := cause.getCause()) is not None:
            cause = below
        return str(cause.toString())
    except Py4JError:  # Java has ended as well
        return str(error)
