"""The command ``fanin fanout``: sends the rows of a file to a queue, as one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from fanin.cli import parsing
from fanin.cli.exits import ExitCode
from fanin.cli.options import (
    Deadline,
    FailOnFailures,
    KeepOption,
    Limit,
    Metadata,
    MinSample,
    OnEnd,
    ToleratedFailures,
    TotalNames,
    UserKey,
    WhatOnFailure,
)
from fanin.cli.rows import Malformed, RowFormat, bodies, format_of
from fanin.cli.session import Session, session
from fanin.cli.watching import complete, follow, may_have_failed
from fanin.domain.batch import Batch, OnFailure, State
from fanin.errors import SendFailed

if TYPE_CHECKING:
    from fanin.client.producing.batch import TrackedBatch

app = typer.Typer()

_ENVELOPE: Final = 1_024
"""Bytes of a message kept for its item id and the names and types of its attributes."""


@app.command()
def fanout(
    ctx: typer.Context,
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", dir_okay=False, help="The file to read; - reads stdin.")
    ],
    queue: Annotated[str, typer.Option(metavar="URL", help="URL of the SQS queue to send to.")],
    kind: Annotated[
        RowFormat | None, typer.Option("--format", help="Format of the file, if its name does not say it.")
    ] = None,
    user_key: UserKey = "",
    deadline: Deadline = None,
    limit: Limit = None,
    metadata: Metadata = None,
    keep: KeepOption = None,
    on_failure: WhatOnFailure = OnFailure.DONE,
    tolerate_failures: ToleratedFailures = None,
    min_sample: MinSample = None,
    on_end: OnEnd = None,
    total: TotalNames = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Go on where an earlier run with this key stopped; use a new key for each import.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the batch has ended.")] = False,
    fail_on_failures: FailOnFailures = False,
) -> None:
    """Send each row of a file to a queue, as a batch.

    FILE is CSV with a header, JSON lines (one object a line), or Parquet. It is streamed, and each row
    becomes a message with a JSON object. Malformed rows are skipped, counted and listed; messages that the
    queue rejects become failed items. Either makes the exit code 1. An error or Ctrl-C cancels the batch.

    With --key it stays open instead: run the same command again to go on, also after a crash. Each row
    keeps its item, and rows that are done are not sent again.
    """
    from fanin.client.sqs_messages import REQUEST_BYTES

    run = session(ctx)
    ends_at = parsing.moment(deadline) if deadline else None
    if key is not None and isinstance(ends_at, timedelta):
        raise typer.BadParameter("with --key give --deadline as a time, such as 2026-11-21T09:40:00Z")
    tolerated = parsing.tolerated(tolerate_failures, min_sample)
    source = kind or format_of(file.name)
    malformed = Malformed()
    with (
        _opened(file) as stream,
        run.tracker.batch(
            user_key=user_key,
            deadline=ends_at,
            limit=limit,
            metadata=dict(map(parsing.pair, metadata or ())),
            keep=keep,
            on_failure=on_failure,
            tolerated_failures=tolerated,
            on_end=[parsing.target(text) for text in on_end or ()],
            totals=total or (),
            key=key,
            on_error="cancel" if key is None else "leave",
        ) as batch,
    ):
        run.remark(f"batch {batch.id}")
        sent, unsent = 0, dict[str, str]()
        if batch.row.state is not State.OPEN:
            run.remark(
                f"an earlier run with key {key} has sent all rows: batch {batch.id} is {batch.row.state}"
            )
        else:
            rows = bodies(stream, source, malformed, most_bytes=REQUEST_BYTES - _ENVELOPE)
            with _progress(run) as progress:
                sent, unsent = _send(run, batch, queue, rows, progress=progress, key=key)
    row = follow(run, batch.id).batch if wait else batch.row
    _answer(run, row, sent=sent, malformed=malformed, unsent=unsent)
    failed = wait and fail_on_failures and may_have_failed(row)
    if malformed.count or unsent or failed or (wait and not complete(row)):
        raise typer.Exit(ExitCode.WRONG)


def _opened(file: Path) -> AbstractContextManager[BinaryIO]:
    if str(file) == "-":
        return nullcontext(typer.get_binary_stream("stdin"))
    try:
        return file.open("rb")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from None


def _send(
    run: Session,
    batch: TrackedBatch,
    queue: str,
    rows: Iterator[str],
    *,
    progress: Callable[[int], None],
    key: str | None,
) -> tuple[int, dict[str, str]]:
    """Send rows; those that the queue rejects become failed items, so that the batch still ends.

    Returns:
        How many messages the queue took, and item id → reason for those that it rejected.
    """
    sent = 0

    def count(taken: int) -> None:
        nonlocal sent
        sent += taken
        progress(taken)

    try:
        batch.send(queue, rows, progress=count, key=key, refused=batch.fail)
    except SendFailed as failed:
        return sent, failed.items
    except BaseException:  # an error, or Ctrl-C
        run.remark(_stopped(batch.id, sent, key))
        raise
    return sent, {}


def _stopped(batch_id: int, sent: int, key: str | None) -> str:
    """What became of the batch, and how to go on."""
    said = f"stopped after {sent:,} messages were sent"
    if key is not None:
        return f"{said}; batch {batch_id} is open: run the same command again to go on with it"
    return (
        f"{said}; batch {batch_id} is cancelled, and consumers still get what was sent. Another run sends all"
        " rows again, in a new batch; with --key it could go on"
    )


@contextmanager
def _progress(run: Session) -> Iterator[Callable[[int], None]]:
    """Show how many messages are sent so far, if stderr is a terminal; takes the number of further ones."""
    if run.as_json or not run.stderr.is_terminal:
        yield lambda _: None
        return
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("sent"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=run.stderr, transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda taken: shown.advance(task, taken)


def _answer(run: Session, batch: Batch, *, sent: int, malformed: Malformed, unsent: dict[str, str]) -> None:
    from fanin.cli.tables import failed, held, sums

    document = {
        "batch_id": batch.batch_id,
        "state": batch.state.value,
        "sent": sent,
        "failed": batch.failed,
        "failed_more": batch.failed_more,
        "held": batch.held,
        "held_more": batch.may_hold_more,
        **({"totals": dict(batch.totals), "totals_exact": batch.totals_exact} if batch.totals else {}),
        "malformed": {
            "count": malformed.count,
            "rows": [{"row": row, "reason": reason} for row, reason in malformed.named],
        },
        "unsent": [{"item": item, "reason": reason} for item, reason in unsent.items()],
    }
    ended = [f"{batch.batch_id}  {batch.state}  {sent:,} sent"]
    ended += [f"{failed(batch)} failed"] if batch.failed else []
    ended += [f"{held(batch)} held"] if batch.held else []
    if brought := sums(batch):
        ended.append(brought)
    run.answer(document, ", ".join(ended))
    if run.as_json:
        return
    for row, reason in malformed.named:
        run.remark(f"row {row}: {reason}")
    if malformed.count > len(malformed.named):
        run.remark(f"and {malformed.count - len(malformed.named):,} more malformed rows")
    for item, reason in unsent.items():
        run.remark(f"not sent: {item}: {reason}")
