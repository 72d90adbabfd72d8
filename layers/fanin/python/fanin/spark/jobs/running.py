"""What all jobs share: arguments, a session, a summary in JSON, an exit code."""

import argparse
import inspect
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

from fanin.errors import FaninError, InvalidRequest, ServiceUnavailable, TooManyRejects
from fanin.spark.jobs import JOBS
from fanin.spark.runtime.failures import raised_in_task, refused_storage, root_cause
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.places import path_of
from fanin.spark.runtime.progress import say
from fanin.spark.runtime.rejects import in_words, rejects_folder
from fanin.spark.runtime.service import require_reachable
from fanin.spark.runtime.session import quiet_session

Summary: TypeAlias = dict[str, Any]

OK: Final = 0
WRONG: Final = 1
"""The job ran to its end, and found that something is wrong; the summary's ``ok`` is false."""
USAGE: Final = 2
FAILED: Final = 3
"""The job could not run to its end; start it again, unless the error says what to fix first."""
INTERRUPTED: Final = 128 + signal.SIGINT
"""Somebody stopped the job with Ctrl-C; start it again. Shells report a signal as 128 and its number."""
MOST_DETAIL: Final = 2_000  # characters of an error in the summary; stderr has all of it
NAME: Final = "summary.json"
_FIRST: Final = ("job", "ok", "error", "warning", "batch_id", "rejects")
"""What the summary begins with, so that what was left out is not overlooked."""
_ENDS: Final = f"""\
The environment names the stack: FANIN_PROFILE=local is that of `fanin local up`; on AWS FANIN_BATCHES_TABLE
and its like have the names of the tables, which are outputs of the stack. On EMR the stack sets them.

The last line that is printed is a summary in JSON. The exit code is {OK} if all is well, {WRONG} if something
is wrong, {USAGE} if the arguments are, {FAILED} if the job could not run to its end, and {INTERRUPTED} after
Ctrl-C. docs/how-to/spark says more."""


def arguments_of(function: Callable[..., object], options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of a job that a function has, too, by the same names."""
    return {name: vars(options)[name] for name in inspect.signature(function).parameters if name in options}


@dataclass(frozen=True)
class Job:
    """One job.

    Attributes:
        name: of a job of this package that of its module, with dashes for underscores.
        about: text for its help.
        arguments: adds its arguments to a parser.
        run: does the work; the summary's ``ok`` decides the exit code. The summary also has what it
            puts into ``options.so_far``, even if it fails.
        settings: Spark properties of its session.
        output: the argument that names a folder of the job, where the summary is written as well.
        input: the argument that names its dataset, if it has one; the summary warns if it is empty.
        check: refuses arguments that do not go together, with ``InvalidRequest``, before anything starts.
        needs: gives the services that it calls, name → URL; unless all can be reached, it does not begin.
    """

    name: str
    about: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[SparkSession, argparse.Namespace], Summary]
    settings: Mapping[str, str] = field(default_factory=dict)
    output: str | None = None
    input: str = "input"
    check: Callable[[argparse.Namespace], object] = field(default=lambda _: None)
    needs: Callable[[argparse.Namespace], Mapping[str, str]] = field(default=lambda _: {})

    def parser(self) -> argparse.ArgumentParser:
        module = f"fanin.spark.jobs.{self.name.replace('-', '_')}"
        parser = argparse.ArgumentParser(
            prog=f"python -m {module}" if self.name in JOBS else None,
            description=self.about,
            epilog=_ENDS,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.arguments(parser)
        parser.set_defaults(so_far={})
        return parser

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the job; the last line that it prints is its summary, as JSON.

        A job that ran to its end also writes it to its folder, as ``summary.json``. That of an earlier run is
        deleted first.

        Returns:
            The exit code: 0 if all is well, 1 if something is wrong, 3 if the job could not run to its end,
            130 if it was interrupted.

        Raises:
            SystemExit: with the exit code 2 if the arguments are wrong.
        """
        parser = self.parser()
        options = parser.parse_args(arguments)
        folder = getattr(options, self.output) if self.output else None
        try:
            self.check(options)
            folder = None if folder is None else path_of(f"--{self.output}", folder)
        except InvalidRequest as error:
            parser.error(str(error))
        began = time.monotonic()
        spark, code = None, FAILED
        try:
            require_reachable(self.needs(options))
            with quiet_session(f"fanin {self.name}", self.settings) as spark:
                if folder is not None:
                    _forget(spark, self.name, folder)
                summary = _warned(self.run(spark, options), getattr(options, self.input, None))
            code = OK if summary["ok"] else WRONG
        except TooManyRejects as error:
            summary = {**_failed(error.code, str(error)), "rejects": error.rejects, "rows": error.rows}
            code = WRONG
        except FaninError as error:
            summary = _failed(error.code, str(error))
        except (PySparkException, Py4JError) as error:
            summary = _spark_failed(error)
        except KeyboardInterrupt:
            summary = _failed("interrupted", "stopped with Ctrl-C; start the same command again")
            code = INTERRUPTED
        except Exception as error:  # noqa: BLE001  whoever waits for a summary gets one, whatever happened
            traceback.print_exc()
            summary = _failed("unexpected", f"{type(error).__name__}: {error}")
        told = {"job": self.name, **options.so_far, **summary, "seconds": round(time.monotonic() - began, 3)}
        line = json.dumps({name: told[name] for name in (*_FIRST, *told) if name in told})
        if spark is not None and folder is not None and code in (OK, WRONG):
            _write(spark, folder, line)
        _explain(self.name, summary, folder and rejects_folder(vars(options).get("rejects"), folder))
        say(line, sys.stdout)
        return code


def _failed(error: str, detail: str) -> Summary:
    return {"ok": False, "error": error, "detail": detail[:MOST_DETAIL]}


def _spark_failed(error: PySparkException | Py4JError) -> Summary:
    if raised := raised_in_task(error):
        return _failed(*raised)
    if known := refused_storage(error):
        return _failed(InvalidRequest.code, known)
    traceback.print_exc()
    return _failed("spark-failed", root_cause(error))


def _warned(summary: Summary, path: str | None) -> Summary:
    """The summary; with a warning if the dataset was empty, which nobody does on purpose."""
    if path is None or summary.get("rows") != 0 or summary.get("rejects"):
        return summary
    empty = (
        f"{path} has no rows; look whether the path is right. Files that are empty, or whose names begin with"
        " a dot or an underscore, are not read"
    )
    return {**summary, "warning": empty}


def _explain(job: str, summary: Summary, folder: str | None) -> None:
    if "warning" in summary:
        say(f"{job}: warning: {summary['warning']}", sys.stderr)
    if "detail" in summary:
        say(f"{job}: {summary['detail']}", sys.stderr)
    elif rejects := summary.get("rejects"):
        count = sum(rejects.values())
        told = f"{count} {'row is a reject' if count == 1 else 'rows are rejects'}: {in_words(rejects)}"
        say(f"{job}: {told}{f'. Look at {folder}' if folder else ''}", sys.stderr)


def _forget(spark: SparkSession, job: str, folder: str) -> None:
    """Delete an earlier run's summary, so that nobody mistakes it for this run's.

    Raises:
        InvalidRequest: a folder, or a file of somebody else's, has the name of the summary; or another job
            wrote it.
    """
    place = Folder(spark, folder)
    try:
        if (text := place.read(NAME)) is not None and (other := _job_of(text)) != job:
            what = "no summary of a job" if other is None else f"the summary of another job, {other}"
            raise InvalidRequest(
                f"{place.at(NAME)} is {what}, and this job would replace it; name another folder"
            )
        place.delete(NAME)
    except (Py4JError, ServiceUnavailable) as error:
        print(f"an earlier run's summary may still be in {folder}: {root_cause(error)}", file=sys.stderr)


def _job_of(text: str) -> object:
    """The name of the job that wrote a summary; None if none did."""
    try:
        return json.loads(text).get("job")
    except (ValueError, AttributeError):
        return None


def _write(spark: SparkSession, folder: str, line: str) -> None:
    """Write the summary beside what the job made; a job that is done does not fail because of it."""
    try:
        Folder(spark, folder).write(NAME, f"{line}\n")
    except (Py4JError, FaninError) as error:
        why = root_cause(error) if isinstance(error, Py4JError) else error
        print(f"the summary is not in {folder}: {why}", file=sys.stderr)
