"""The command ``fanin restore``: copies rows back from tables of a point-in-time recovery."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from fanin.cli.listing import Table
from fanin.cli.parsing import batch_id
from fanin.cli.session import session
from fanin.entry.settings import Settings

app = typer.Typer()


@app.command()
def restore(
    ctx: typer.Context,
    suffix: Annotated[
        str,
        typer.Argument(
            metavar="SUFFIX", help="What the names of the restored tables have behind those of the service."
        ),
    ],
    *,
    batches: Annotated[
        list[int] | None,
        typer.Option("--batch", parser=batch_id, metavar="BATCH", help="Only this batch; repeatable."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace rows of these batches that are there by what they were."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the rows, and write nothing.")] = False,
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
    tables = {
        "batches": settings.batches_table,
        "words": settings.words_table,
        "parts": settings.parts_table,
        "directory": settings.directory_table,
    }
    shown = Table("table", "found", "copied", right=("found", "copied"))
    document = []
    restored = RestoredTables(tables, suffix, now=time.time())
    for table, done in restored.copy_back(batches or (), replace=replace, write=not dry_run):
        document.append({"table": tables[table], "found": done.found, "copied": done.copied})
        shown.add_row(tables[table], done.found, done.copied)
    run.answer({"tables": document}, shown)
