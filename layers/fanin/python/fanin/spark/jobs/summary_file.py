"""The file ``summary.json`` in the folder of a job: it is there only if the last run came to its end."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from fanin.errors import FaninError, InvalidRequest
from fanin.spark.runtime.failures import root_cause
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.session import submitted

NAME: Final = "summary.json"


def as_json(summary: dict[str, Any], encoding: str | None) -> str:
    """A summary as one line of JSON; escapes letters only if the encoding lacks some of them.

    Args:
        summary: as JSON.
        encoding: of where it is written to; None if that is not known.
    """
    line = json.dumps(summary, ensure_ascii=False)
    try:
        line.encode(encoding or "ascii")
    except UnicodeEncodeError:
        return json.dumps(summary)
    return line


def forget_on_this_machine(job: str, folder: str | None) -> None:
    """Delete an earlier run's summary without Spark, if there is a folder and it is on this machine."""
    path = (folder or "").removeprefix("file:")
    if path and ":/" not in path and not submitted():  # a cluster may mean a folder of HDFS
        with contextlib.suppress(OSError):  # the job says why it cannot write there
            if _job_of(Path(path, NAME).read_text(errors="replace")) == job:
                Path(path, NAME).unlink()


def _job_of(text: str) -> object:
    """The name of the job that wrote a summary; None if none did."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found.get("job") if isinstance(found, dict) else None


def forget(spark: SparkSession, job: str, folder: str | None) -> None:
    """Delete an earlier run's summary, if there is a folder, so that nobody mistakes it for this run's.

    Raises:
        InvalidRequest: a folder, or a file of somebody else's, has the name of the summary; or another job
            wrote it.
    """
    if folder is None:
        return
    place = Folder(spark, folder)
    try:
        text = place.read(NAME)
        if text is not None and (other := _job_of(text)) != job:
            what = "no summary of a job" if other is None else f"the summary of another job, {other}"
            raise InvalidRequest(
                f"{place.at(NAME)} is {what}, and this job would replace it; name another folder"
            )
        place.delete_file(NAME)
    except Py4JError as error:
        print(f"an earlier run's summary may still be in {folder}: {root_cause(error)}", file=sys.stderr)


def write(spark: SparkSession, folder: str | None, summary: dict[str, Any]) -> None:
    """Write the summary beside what the job made; a job that is done does not fail because of it."""
    if folder is None:
        return
    try:
        Folder(spark, folder).write(NAME, f"{as_json(summary, 'utf-8')}\n")
    except (Py4JError, FaninError) as error:
        why = root_cause(error) if isinstance(error, Py4JError) else error
        print(f"the summary is not in {folder}: {why}", file=sys.stderr)
