"""Commands on Spark jobs on EMR Serverless: fanin spark submit, status, cancel, dashboard."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from fanin.cli import parsing
from fanin.cli.exits import ExitCode
from fanin.cli.session import Session, session
from fanin.spark.jobs import JobName

if TYPE_CHECKING:
    from fanin.spark.emr.submit import Run, Runs

app = typer.Typer(name="spark", help="Spark jobs on EMR Serverless.", no_args_is_help=True)


Stack: TypeAlias = Annotated[str, typer.Option(help="The pipeline's stack.")]
RunId: TypeAlias = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]
Wait: TypeAlias = Annotated[bool, typer.Option("--wait", help="Look at the run until it has ended.")]
STACK = "fanin-pipeline"


@app.command()
def submit(
    ctx: typer.Context,
    job: Annotated[JobName, typer.Argument(metavar="JOB", help="ack, audit, fan-out or report.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- ARGUMENTS", help="What the job itself is told; -- --help lists it."),
    ] = None,
    *,
    stack: Stack = STACK,
    wheel: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Run this wheel of fanin.")
    ] = None,
    deployed: Annotated[
        bool, typer.Option("--deployed", help="Run what the stack was deployed with; upload nothing.")
    ] = False,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A Spark property; may be repeated."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="Your name for this run: the same one again starts no second.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="How often to start it until it succeeds.")] = 1,
    timeout: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Stop it after so long; 12h if not said.")
    ] = None,
    wait: Wait = False,
) -> None:
    """Run a job on EMR Serverless; prints the id of the run.

    Takes the fanin that is installed here, uploads it to the bucket of the pipeline's stack, and
    starts the job. The stack says the rest: application, role, dependencies, and where the tracker
    is. Arguments of the job stand after --, as in: fanin spark submit audit -- --scan --output s3://...
    """
    from fanin.spark.emr.packing import Package
    from fanin.spark.emr.submit import Submission

    if wheel and deployed:
        raise typer.BadParameter("say --wheel or --deployed, not both")
    package = None if deployed else Package.wheel(wheel) if wheel else Package.installed()
    named = {} if token is None else {"token": token}
    submission = Submission(
        job=job.value,
        arguments=arguments or [],
        package=package,
        conf=dict(map(parsing.pair, conf or ())),
        attempts=attempts,
        timeout=parsing.span(timeout) if timeout else None,
        **named,
    )
    runs = _runs(stack)
    _finish(session(ctx), runs, runs.submit(submission), wait=wait)


@app.command()
def status(ctx: typer.Context, run: RunId, *, stack: Stack = STACK, wait: Wait = False) -> None:
    """Say how a run is.

    Exits with 1 if it failed or was cancelled.
    """
    runs = _runs(stack)
    _finish(session(ctx), runs, runs.look(run), wait=wait)


@app.command()
def cancel(ctx: typer.Context, run: RunId, *, stack: Stack = STACK) -> None:
    """Ask a run to end; every job may be submitted again."""
    _runs(stack).cancel(run)
    session(ctx).answer({"cancelled": run}, run)


@app.command()
def dashboard(ctx: typer.Context, run: RunId, *, stack: Stack = STACK) -> None:
    """Print a link to a run's Spark UI and logs, good for an hour."""
    url = _runs(stack).dashboard(run)
    session(ctx).answer({"url": url}, url)


def _runs(stack: str) -> Runs:
    from fanin.spark.emr.submit import Pipeline, Runs

    return Runs(Pipeline.of_stack(stack))


def _finish(screen: Session, runs: Runs, run: Run, *, wait: bool) -> None:
    """Print a run, ended if that is waited for, and exit accordingly."""
    if wait and not run.ended:
        screen.remark(f"run {run.id}")
        for seen in runs.follow(run.id):
            screen.remark(f"{seen.state} {seen.details}".rstrip())
            run = seen
    screen.answer(asdict(run), f"{run.id} {run.state}")
    if run.failed:
        if not wait and run.details:
            screen.remark(run.details)
        raise typer.Exit(ExitCode.WRONG)
