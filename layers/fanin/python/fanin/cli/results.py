"""``fanin results``: what the items of a batch gave, as JSON lines or CSV."""

from __future__ import annotations

import csv
import json
import sys
from enum import StrEnum
from typing import Annotated

import typer

from fanin.cli.options import BatchId
from fanin.cli.session import session
from fanin.wire.items import ITEM_RESULT

app = typer.Typer()


class Form(StrEnum):
    """How results are written."""

    JSONL = "jsonl"
    CSV = "csv"


@app.command()
def results(
    ctx: typer.Context,
    batch: BatchId,
    form: Annotated[
        Form, typer.Option("--format", help="JSON lines, or CSV with the JSON in a column.")
    ] = Form.JSONL,
) -> None:
    """Write the results of all items that are done, in their order.

    The batch was opened with --results. While it runs, these are the results so far. Items that failed have
    none; `fanin failures` lists them.
    """
    found = map(ITEM_RESULT.encode, session(ctx).tracker.iter_results(batch))
    if form is Form.JSONL:
        for one in found:
            sys.stdout.write(json.dumps(one, ensure_ascii=False) + "\n")
        return
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(ITEM_RESULT.fields)
    for one in found:
        one["result"] = json.dumps(one["result"], ensure_ascii=False)
        table.writerow([one.get(name, "") for name in ITEM_RESULT.fields])
