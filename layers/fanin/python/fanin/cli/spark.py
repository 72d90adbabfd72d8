"""Commands on Spark jobs on EMR Serverless: ``fanin spark submit``, ``status``, ``cancel``, ``dashboard``."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fanin.cli.commands import argument, flag, group, option
from fanin.cli.exits import ExitCode
from fanin.cli.options import pairs, spans
from fanin.cli.parsing import Pair
from fanin.cli.session import Session, session
from fanin.spark.jobs import JOBS

if TYPE_CHECKING:
    from fanin.spark.emr import JobRun, Pipeline

app = group("spark", "Spark jobs on EMR Serverless.")

STACK = option("Name of the pipeline's stack.", default="fanin-pipeline")
RUN_ID = argument("Id of the job run.", metavar="RUN")
WAIT = flag("Wait until the run has ended.", "--wait")


@app.command()
def submit(
    ctx: typer.Context,
    words: list[str] | None = argument(
        "Name of the job: ack, audit or fan-out; no name with --script. Then its own arguments; --"
        " --help lists them.",
        default=None,
        metavar="JOB -- ARGUMENTS",
        autocompletion=lambda: list(JOBS),
    ),
    *,
    script: Path | None = option("Run this script of your own instead of a job of fanin.", metavar="FILE"),
    files: list[Path] | None = option(
        "A file or folder that the script imports; may be repeated.", metavar="PATH"
    ),
    stack: str = STACK,
    wheel: Path | None = option(
        "Run this wheel of fanin instead of the installed one.", metavar="FILE", dir_okay=False
    ),
    deployed: bool = flag("Run the fanin that the stack was deployed with; upload nothing.", "--deployed"),
    conf: list[Pair] | None = pairs("A Spark property"),
    token: str | None = option("Idempotency token: repeating the command with it starts no second run."),
    attempts: int = option("How often to start the job at most, until it succeeds.", default=1, min=1),
    timeout: timedelta | None = spans("Stop the job after this long; 12h by default."),
    wait: bool = WAIT,
) -> None:
    """Run a job on EMR Serverless, and print the id of the run.

    Uploads the installed fanin to the bucket of the pipeline's stack, and starts the job. Application,
    role, dependencies and the tracker's address come from the stack. Arguments for the job follow
    after --, as in: fanin spark submit audit -- --scan --output s3://...

    With --script it runs your own code: fanin spark submit --script clean.py -- --day 7
    """
    from fanin.spark.emr import Script

    if wheel and deployed:
        raise typer.BadParameter("pass --wheel or --deployed, not both")
    if files and not script:
        raise typer.BadParameter("--files are those of a script; name it by --script")
    arguments = list(words or ())
    job: str | Script
    if script:
        job = Script.of(script, files or ())
    elif arguments[:1] and arguments[0] in JOBS:
        job = arguments.pop(0)
    else:
        wrong = f"there is no job {arguments[0]}; " if arguments else ""
        raise typer.BadParameter(
            f"{wrong}name one of {', '.join(JOBS)}, or a script of your own by --script", param_hint="JOB"
        )
    package = None if deployed else Script.wheel(wheel) if wheel else Script.installed()
    pipeline = _pipeline(stack)
    started = pipeline.submit(
        job,
        arguments,
        package=package,
        conf=dict(conf or ()),
        token=token,
        attempts=attempts,
        timeout=timeout,
    )
    _finish(session(ctx), pipeline, started, wait=wait)


@app.command()
def status(ctx: typer.Context, run: str = RUN_ID, stack: str = STACK, wait: bool = WAIT) -> None:
    """Show the state of a run.

    Exits with 1 if the run failed or was cancelled.
    """
    pipeline = _pipeline(stack)
    _finish(session(ctx), pipeline, pipeline.look(run), wait=wait)


@app.command()
def cancel(ctx: typer.Context, run: str = RUN_ID, stack: str = STACK) -> None:
    """Cancel a run; every job may be submitted again afterwards."""
    _pipeline(stack).cancel(run)
    session(ctx).answer({"cancelled": run}, run)


@app.command()
def dashboard(ctx: typer.Context, run: str = RUN_ID, stack: str = STACK) -> None:
    """Print a link to the Spark UI and the logs of a run; it is valid for one hour."""
    url = _pipeline(stack).dashboard(run)
    session(ctx).answer({"url": url}, url)


def _pipeline(stack: str) -> Pipeline:
    from fanin.spark.emr import Pipeline

    return Pipeline.of_stack(stack)


def _finish(screen: Session, pipeline: Pipeline, run: JobRun, *, wait: bool) -> None:
    """Print a run, after its end if ``wait`` is set, and exit with 1 if it failed."""
    if wait and not run.ended:
        screen.remark(f"run {run.id}; to wait for it again: fanin spark status {run.id} --wait")
        for seen in pipeline.follow(run.id):
            screen.remark(f"{seen.state} {seen.details}".rstrip())
            run = seen
    screen.answer(asdict(run), f"{run.id} {run.state}")
    if run.failed:
        if not wait and run.details:
            screen.remark(run.details)
        raise typer.Exit(ExitCode.WRONG)
