"""The command ``fanin ui``: the console, in a browser."""

from __future__ import annotations

import logging
from typing import Annotated
from urllib.parse import urlsplit

import typer

from fanin.cli.session import Session, session
from fanin.errors import NotConfigured

app = typer.Typer()


@app.command()
def ui(
    ctx: typer.Context,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, help="TCP port. By default the first free one from 8642 on."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the link in a browser.")] = True,
    write: Annotated[
        bool, typer.Option("--write", help="Show buttons: close, cancel, redrive and more.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on; others than the default can be reached from outside.",
        ),
    ] = "127.0.0.1",
) -> None:
    """Show the whole stack in a browser, live.

    Batches, scatters, frames, buffers, the directory and routes: what needs attention, how far each
    batch is, and why it is not finished.

    Starts a small server on this machine and prints a link, which works once. It calls the service
    with your own credentials. It is read-only unless --write is given. Ctrl-C stops it.
    """
    try:
        from fanin.console.serve import serve
    except ImportError as error:
        raise NotConfigured(
            "the console needs more packages; install them with: pip install 'fanin[ui]'"
        ) from error

    run = session(ctx)
    _log_actions(run)
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


def _log_actions(run: Session) -> None:
    """Print what the buttons do, a line for each."""
    from fanin.console.actions.log import LOGGER

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            run.remark(record.getMessage())

    log = logging.getLogger(LOGGER)
    log.setLevel(logging.INFO)
    log.addHandler(Lines())
    log.propagate = False
