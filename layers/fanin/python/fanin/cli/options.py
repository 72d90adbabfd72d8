"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from fanin.cli.parsing import batch_id

BatchId: TypeAlias = Annotated[int, typer.Argument(parser=batch_id, metavar="BATCH", help="Batch id.")]
PageSize: TypeAlias = Annotated[int, typer.Option("--limit", min=1, max=1_000, help="Size of a page.")]
Cursor: TypeAlias = Annotated[str | None, typer.Option(help="Go on where the page before ended.")]
EveryPage: TypeAlias = Annotated[bool, typer.Option("--all", help="Follow all pages.")]

UserKey: TypeAlias = Annotated[str, typer.Option(help="Your own name for the batch, returned with events.")]
Deadline: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME", help="A span from now (15m, 2h), or RFC 3339.")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option("--limit", help="Most items that may be pending at a time.")
]
Metadata: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--meta", metavar="KEY=VALUE", help="Returned with events; may be repeated."),
]
