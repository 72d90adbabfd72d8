"""Commands on the service itself: ``fanin local up``, ``down``, ``status``, ``env``; ``fanin openapi``."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from fanin.cli.commands import CommandGroup
from fanin.cli.exits import ExitCode
from fanin.cli.listing import FactSheet
from fanin.cli.session import session
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured

app = typer.Typer()
local = typer.Typer(
    cls=CommandGroup, help="The whole service on this machine, on an emulator of AWS.", no_args_is_help=True
)
app.add_typer(local, name="local")


@local.command()
def up(
    ctx: typer.Context,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="TCP port for the emulator.")] = None,
    auth: Annotated[
        bool | None, typer.Option(help="Verify signatures, and enforce the policies of the functions.")
    ] = None,
) -> None:
    """Start the emulator, and deploy the stack to it.

    Repeating the command deploys what has changed since.
    """
    from fanin.local import up as start
    from fanin.local.steps import Steps

    with Steps(sys.stderr) as step:
        stack = start(port=port, auth=auth, report=step)
    run = session(ctx)
    shown = [
        ("api", stack.api_url),
        ("aws endpoint", stack.endpoint_url),
        ("work queue", stack.work_queue_url),
        ("log", stack.log_file),
    ]
    run.answer(
        asdict(stack),
        FactSheet(shown),
        "to use it: export FANIN_PROFILE=local, or fanin --local ...",
        'for programs that use boto3, too: eval "$(fanin local env)"',
    )


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
    shown: list[tuple[str, object]] = [("state", found.state)]
    if found.stack is not None:
        shown += [
            ("api", found.stack.api_url),
            ("aws endpoint", found.stack.endpoint_url),
            ("work queue", found.stack.work_queue_url),
        ]
    shown.append(("log", found.log_file))
    document = {
        "state": found.state,
        "stack": None if found.stack is None else asdict(found.stack),
        "log_file": str(found.log_file),
    }
    session(ctx).answer(document, FactSheet(shown))
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
