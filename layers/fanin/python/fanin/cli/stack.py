"""Commands on the service itself: ``fanin local``, ``ui``, ``restore`` and ``openapi``."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from fanin.cli.commands import argument, flag, group, option
from fanin.cli.exits import ExitCode
from fanin.cli.listing import FactSheet, Table
from fanin.cli.session import session
from fanin.domain.ids import parse_batch_id
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured

if TYPE_CHECKING:
    from fanin.local import Stack

app = typer.Typer()
local = group("local", "The whole service on this machine, on an emulator of AWS.")
app.add_typer(local)


@local.command()
def up(
    ctx: typer.Context,
    port: int | None = option("TCP port for the emulator.", min=1, max=65_535),
    auth: bool | None = option("Verify signatures, and enforce the policies of the functions."),
) -> None:
    """Start the emulator, and deploy the stack to it.

    Repeating the command deploys what has changed since.
    """
    from fanin.local import up as start
    from fanin.local.steps import Steps

    with Steps(sys.stderr) as step:
        stack = start(port=port, auth=auth, report=step)
    run = session(ctx)
    run.answer(
        asdict(stack),
        FactSheet([*_addresses(stack), ("log", stack.log_file)]),
        "to use it: export FANIN_PROFILE=local, or fanin --local ...",
        'for programs that use boto3, too: eval "$(fanin local env)"',
    )


def _addresses(stack: Stack) -> list[tuple[str, str]]:
    return [
        ("api", stack.api_url),
        ("aws endpoint", stack.endpoint_url),
        ("work queue", stack.work_queue_url),
    ]


@local.command()
def down(ctx: typer.Context) -> None:
    """Stop the emulator, and discard everything in it."""
    from fanin.local import down as stop

    stopped = stop()
    session(ctx).answer({"stopped": stopped}, "stopped" if stopped else "nothing was running")


@local.command("status")
def local_status(ctx: typer.Context) -> None:
    """Show whether the local stack is up.

    Exits with 1 if it is not up.
    """
    from fanin.local import status

    found = status()
    shown = [*(_addresses(found.stack) if found.stack else ()), ("log", str(found.log_file))]
    document = {**asdict(found), "log_file": str(found.log_file)}
    session(ctx).answer(document, FactSheet([("state", found.state), *shown]))
    if found.state != "up":
        raise typer.Exit(ExitCode.WRONG)


@local.command("env")
def local_env(ctx: typer.Context) -> None:
    """Print environment variables that lead AWS clients and the Spark jobs to the local stack.

    In a shell: eval "$(fanin local env)"
    """
    from fanin.local import environment, status

    found = status()
    if found.stack is None:
        raise NotConfigured("the local stack is not up; start it with `fanin local up`")
    variables = environment(found.stack, Settings.from_env().environment)
    exports = (f"export {name}={shlex.quote(value)}" for name, value in variables.items())
    session(ctx).answer(variables, *exports)


@app.command()
def openapi(ctx: typer.Context) -> None:
    """Print the API's OpenAPI document."""
    try:
        from fanin.entry.http.openapi import document
        from fanin.entry.http.table import ROUTES
    except ImportError as error:
        raise NotConfigured(
            "the OpenAPI document needs Powertools; install it with: pip install 'fanin[lambda]'"
        ) from error

    run = session(ctx)
    run.as_json = True
    run.answer(document(ROUTES))


@app.command()
def ui(
    ctx: typer.Context,
    port: int | None = option("TCP port. By default the first free one from 8642 on.", min=1, max=65_535),
    browser: bool = option("Open the link in a browser.", default=True),
    write: bool = flag("Show buttons: close, cancel, redrive and more.", "--write"),
    host: str = option(
        "Address to listen on; others than the default can be reached from outside.",
        default="127.0.0.1",
        metavar="ADDRESS",
    ),
) -> None:
    """Show the whole stack in a browser, live.

    Batches, scatters, frames, buffers, the directory and routes: what needs attention, how far each
    batch is, and why it is not finished.

    Starts a small server on this machine and prints a link, which works once. It calls the service
    with your own credentials. It is read-only unless --write is given. Ctrl-C stops it.
    """
    try:
        from fanin.console.actions.log import log_to
        from fanin.console.serve import serve
    except ImportError as error:
        raise NotConfigured(
            "the console needs more packages; install them with: pip install 'fanin[ui]'"
        ) from error

    run = session(ctx)
    log_to(sys.stderr)
    try:
        serve(
            run.tracker.services,
            name=urlsplit(run.stack).hostname or run.stack,
            write=write,
            host=host,
            port=port,
            browser=browser,
            report=run.remark,
        )
    except KeyboardInterrupt:
        run.remark("stopped")


@app.command()
def restore(
    ctx: typer.Context,
    suffix: str = argument(
        "What the names of the restored tables have behind those of the service.", metavar="SUFFIX"
    ),
    batches: list[int] | None = option(
        "Only this batch; repeatable.", "--batch", parser=parse_batch_id, metavar="BATCH"
    ),
    replace: bool = flag("Replace rows of these batches that are there by what they were.", "--replace"),
    dry_run: bool = flag("Count the rows, and write nothing.", "--dry-run"),
) -> None:
    """Copy rows back from tables that DynamoDB has restored beside those of the service.

    Rows that are missing are written; others stay as they are, unless --replace names their batch. The
    variables FANIN_*_TABLE name the tables of the service. Stop producers and consumers first.
    """
    from fanin.adapters.dynamodb.restored import RestoredTables

    if not suffix:
        raise typer.BadParameter("it must not be empty, since the tables would be copied to themselves")
    if replace and not batches:
        raise typer.BadParameter("--replace needs --batch: it undoes what was acknowledged since")
    run, settings = session(ctx), Settings.from_env()
    tables = {name: getattr(settings, f"{name}_table") for name in ("batches", "words", "parts", "directory")}
    shown = Table("table", "found", "copied", right=("found", "copied"))
    document = []
    restored = RestoredTables(tables, suffix, now=time.time())
    for table, found, copied in restored.copy_back(batches or (), replace=replace, write=not dry_run):
        document.append({"table": tables[table], "found": found, "copied": copied})
        shown.add_row(tables[table], found, copied)
    run.answer({"tables": document}, shown)
