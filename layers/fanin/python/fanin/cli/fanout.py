"""The rows of a file as messages of one batch: ``fanin fanout``; those that were lost: ``fanin resend``."""

from __future__ import annotations

import io
import sys
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import typer

from fanin.cli import options, parsing
from fanin.cli.commands import argument, flag, option
from fanin.cli.exits import ExitCode
from fanin.cli.parsing import Pair
from fanin.cli.rows import MalformedRow, RowFormat, RowReading, bodies, format_of, guessed, unpacked
from fanin.cli.sending import SendMeter, all_sent, asking, stopped
from fanin.cli.session import Session, session
from fanin.cli.times import now_ms
from fanin.cli.watching import complete, follow_all, may_have_failed
from fanin.client.messages import Message
from fanin.domain.batch import Batch, OnFailure, State
from fanin.domain.diagnosis import SentItems
from fanin.domain.failures import Keep
from fanin.domain.reports import MissingRange
from fanin.domain.targets import Target
from fanin.errors import BatchClosed, FaninError, InvalidRequest, SendFailed
from fanin.wire.json_types import encode_time

if TYPE_CHECKING:
    from fanin.client.producing.batch import TrackedBatch

app = typer.Typer()

_ENVELOPE: Final = 1_024
"""Bytes of a message kept for its item id and the names and types of its attributes."""


ROWS_FILE = argument("The file to read; - reads stdin.", metavar="FILE", dir_okay=False)
QUEUE_URL = option("URL of the SQS queue to send to.", default=..., metavar="URL")
FORMAT = option("Format of the file, if its name does not say it; that of stdin is guessed.", "--format")
DELIMITER = option(
    "What separates the fields of CSV, such as ';'; \\t is a tab.", metavar="CHARACTER", show_default=","
)
ENCODING = option("Encoding of CSV and JSON lines, such as latin-1.", default="utf-8", metavar="NAME")
FAIR = flag(
    "On a standard queue, name the batch as the group of its messages, so that a large batch keeps"
    " no other waiting.",
    "--fair",
)


@app.command()
def fanout(
    ctx: typer.Context,
    *,
    file: Path = ROWS_FILE,
    queue: str = QUEUE_URL,
    kind: RowFormat | None = FORMAT,
    delimiter: str | None = DELIMITER,
    encoding: str = ENCODING,
    user_key: str = options.USER_KEY,
    deadline: Any = options.DEADLINE,
    limit: int | None = options.LIMIT,
    metadata: list[Pair] | None = options.METADATA,
    keep: Keep | None = options.KEEP,
    on_failure: OnFailure = options.ON_FAILURE,
    tolerate_failures: str | None = options.TOLERATED_FAILURES,
    min_sample: int | None = options.MIN_SAMPLE,
    on_end: list[Target] | None = options.ON_END,
    total: list[str] | None = options.TOTAL_NAMES,
    milestones: Any = options.MILESTONES,
    key: str | None = option(
        "Go on where an earlier run with this key stopped; use a new key for each import.", metavar="KEY"
    ),
    skip: int = option(
        "With --key: the first N messages were sent; Ctrl-C prints N.", default=0, min=0, metavar="N"
    ),
    fair: bool = FAIR,
    wait: bool = flag("Wait until the batch has ended.", "--wait"),
    fail_on_failures: bool = options.FAIL_ON_FAILURES,
) -> None:
    """Send each row of a file to a queue, as a batch.

    FILE is CSV or TSV with a header, JSON lines (one object a line), or Parquet; the first three also as
    .gz or .zst. It is streamed, and each row becomes a message with a JSON object. Malformed rows are
    skipped, counted and listed; messages that the queue rejects become failed items. Either makes the exit
    code 1.

    Ctrl-C waits for the requests under way, and prints the command that sends exactly the rest. A second
    Ctrl-C stops at once.

    An error cancels the batch. With --key it stays open instead: run the same command again to go on, also
    after a crash. Each row keeps its item, and rows that are done are not sent again.
    """
    from fanin.client.producing.resuming import Stop

    run = session(ctx)
    if skip and key is None:
        raise typer.BadParameter("--skip needs the --key of the run that has sent the first messages")
    ends_at = _ends_at(deadline, key)
    tolerated = parsing.tolerated(tolerate_failures, min_sample)
    malformed, stop = MalformedRow(), Stop(skip)
    named = key or f"fanout-{uuid.uuid4().hex}"
    with ExitStack() as opened:
        raw = opened.enter_context(_opened(file))
        how = reading(file.name, raw, kind, delimiter, encoding)
        meter = SendMeter(raw, whole=how.kind is not RowFormat.PARQUET)
        rows = meter.counted(_bodies(file.name, raw, how, malformed))
        sent = opened.enter_context(all_sent(run))
        batch = opened.enter_context(
            run.tracker.batch(
                user_key=user_key,
                deadline=ends_at,
                limit=limit,
                metadata=dict(metadata or ()),
                keep=keep,
                on_failure=on_failure,
                tolerated_failures=tolerated,
                on_end=on_end or (),
                totals=total or (),
                milestones=milestones or (),
                key=named,
                on_error="leave",
            )
        )
        run.remark(f"batch {batch.id}")
        unsent: dict[str, str] = {}
        if _takes_rows(run, batch, key):
            same = {"key": named, "deadline": None if ends_at is None else encode_time(ends_at)}
            try:
                with meter.drawn(run) as progress, asking(stop):
                    # Messages that the queue rejects become failed items, so that the batch still ends.
                    batch.send(
                        queue, rows, progress=progress, key=named, refused=batch.fail, stop=stop, fair=fair
                    )
            except SendFailed as error:
                unsent = error.items
            except KeyboardInterrupt:
                text = "Messages that were under way, or whose items are not done by then, may be sent again"
                text += ", and count once. To go on"
                raise stopped(run, batch.id, meter.sent, text, skip=skip or None, **same) from None
            except Exception:
                _failed(run, batch, meter.sent, key)
                raise
            if stop.asked:
                text = "Nothing is sent twice if you go on with the same input"
                _tell(run, malformed, unsent)
                raise stopped(run, batch.id, meter.sent, text, skip=stop.position, **same)
            sent.append(batch.id)
    row = _followed(run, batch.id) if wait else batch.row
    _answer(run, row, sent=meter.sent, malformed=malformed, unsent=unsent)
    failed = wait and fail_on_failures and may_have_failed(row)
    if malformed.count or unsent or failed or (wait and not complete(row)):
        raise typer.Exit(ExitCode.WRONG)


@app.command()
def resend(
    ctx: typer.Context,
    *,
    batch: int = options.BATCH_ID,
    file: Path = ROWS_FILE,
    queue: str = QUEUE_URL,
    kind: RowFormat | None = FORMAT,
    delimiter: str | None = DELIMITER,
    encoding: str = ENCODING,
    fair: bool = FAIR,
) -> None:
    """Send the rows of a file again whose items are missing: their messages were lost.

    FILE is the one that `fanin fanout` sent as this batch: its n-th well-formed row is the n-th item. A
    message that was not lost is handled twice, and counts once. Exits with 1 if an item has no row.

    If the batch has ended without these items, they become items of a new batch, which retries it. Running
    the command again goes on with the same one.
    """
    from fanin.client.producing.sender import Sender

    run = session(ctx)
    row = run.tracker.status(batch).batch
    if row.retry_of is not None:
        raise InvalidRequest(
            f"batch {batch} retries batch {row.retry_of}, so its items are not the rows of a file; send its"
            " messages as a new batch, or fail them: `fanin fail --range`"
        )
    missing = list(run.tracker.iter_missing(batch))
    short: list[int] = []

    def rows() -> Iterator[str]:
        with _opened(file) as raw:
            how = reading(file.name, raw, kind, delimiter, encoding)
            yield from _bodies(file.name, raw, how, MalformedRow())

    def lost() -> Iterator[tuple[str, Message]]:
        return _lost(missing, rows(), short)

    target = batch
    if row.state.terminal and missing:
        if str(file) == "-":
            raise typer.BadParameter(f"batch {batch} is {row.state}; pass a file, since it is read twice")
        deque(lost(), maxlen=0)  # a new batch of some of the rows could not take the others later
        target, sent, refused = (batch, 0, {}) if short else _as_new(run, row, queue, lost(), fair=fair)
    else:
        sender = Sender(run.tracker.sqs, queue, group_id=str(batch), fair=fair)
        sent, refused = sum(accepted for accepted, _ in sender.send([lost()])), sender.refused
        if sent:  # one note, however many ranges were missing: those between them were sent before
            upto = short[0] if short else missing[-1].stop
            run.tracker.note_sent(batch, SentItems(queue, missing[0].start, upto))
    said = f"{sent:,} sent again" + (f", as batch {target}" if target != batch else "")
    run.answer({"batch_id": target, "sent": sent, "refused": refused}, said)
    for item, why in refused.items():
        run.remark(f"not sent: {item}: {why}")
    if short:
        run.remark(f"the file has fewer rows than the batch has items: item {short[0]:,} has no row")
    if refused or short:
        raise typer.Exit(ExitCode.WRONG)


def _bodies(name: str, file: BinaryIO, how: RowReading, malformed: MalformedRow) -> Iterator[str]:
    """The rows of an open file, as they become messages."""
    from fanin.client.sqs import REQUEST_BYTES

    return bodies(unpacked(file, name), how, malformed, most_bytes=REQUEST_BYTES - _ENVELOPE)


def _lost(
    missing: Iterable[MissingRange], bodies: Iterator[str], short: list[int]
) -> Iterator[tuple[str, Message]]:
    """Item id → message, of items that are missing; the first that has no row goes to ``short``."""
    rows = enumerate(bodies)
    for found in missing:
        for number, ordinal in enumerate(range(found.start, found.stop), found.items.start):
            body = next((text for n, text in rows if n == ordinal), None)
            if body is None:
                short.append(ordinal)
                return
            yield f"{found.group}:{number}", Message(body)


def _as_new(
    run: Session, ended: Batch, queue: str, lost: Iterator[tuple[str, Message]], *, fair: bool
) -> tuple[int, int, dict[str, str]]:
    """Send rows as a batch that retries one that has ended; its id, how many were sent, what was refused."""
    with run.tracker.batch(
        user_key=ended.user_key,
        metadata=ended.metadata,
        retry_of=ended.batch_id,
        keep=ended.keep,
        on_failure=ended.on_failure,
        totals=tuple(ended.totals),
        results=ended.results,
        key=f"resend-{ended.batch_id}",
        on_error="leave",
    ) as batch:
        if batch.row.state is not State.OPEN:
            run.remark(f"an earlier run has sent them: batch {batch.id} is {batch.row.state}")
            if batch.row.state.terminal and not complete(batch.row):
                raise typer.Exit(ExitCode.WRONG)
            return batch.id, 0, {}
        rows = (message for _, message in lost)
        try:
            return batch.id, batch.send(queue, rows, key="rows", refused=batch.fail, fair=fair), {}
        except SendFailed as failed:
            return batch.id, failed.sent, failed.items


def _ends_at(ends_at: timedelta | int | None, key: str | None) -> int | None:
    """The deadline, in milliseconds since 1970: the same if the command is repeated."""
    if not isinstance(ends_at, timedelta):
        return ends_at
    if key is not None:
        raise typer.BadParameter("with --key give --deadline as a time, such as 2026-11-21T09:40:00Z")
    return now_ms() + int(ends_at.total_seconds() * 1000)


def _takes_rows(run: Session, batch: TrackedBatch, key: str | None) -> bool:
    """Whether the batch takes rows; not if an earlier run with the key has sent all of them.

    Raises:
        BatchClosed: it has ended, and perhaps without some rows.
    """
    row = batch.row
    if row.state.terminal and row.closed_at is None:
        raise BatchClosed(
            f"batch {batch.id} of the key {key} is {row.state}, and was never closed, so an earlier run may"
            " not have sent all rows; nothing was sent. Send them as a new batch, with another --key"
        )
    if row.state is not State.OPEN:
        run.remark(f"an earlier run with key {key} has sent all rows: batch {batch.id} is {row.state}")
    return row.state is State.OPEN


def _followed(run: Session, batch_id: int) -> Batch:
    try:
        (progress,) = follow_all(run, [batch_id])
    except KeyboardInterrupt:
        run.remark(f"all rows were sent; to go on watching: {run.command('watch', str(batch_id))}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    return progress.batch


def _opened(file: Path) -> AbstractContextManager[io.BufferedReader]:
    if str(file) == "-":
        if sys.stdin is None:
            raise typer.BadParameter("stdin is closed; pass the name of a file, or rows through a pipe")
        stdin: Any = typer.get_binary_stream("stdin")
        return nullcontext(stdin if isinstance(stdin, io.BufferedReader) else io.BufferedReader(stdin))
    try:
        return file.open("rb")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from None


def reading(
    name: str, file: io.BufferedReader, kind: RowFormat | None, delimiter: str | None, encoding: str
) -> RowReading:
    """How a file is read, from its name and the options; how stdin is read, also from its beginning.

    Raises:
        InvalidRequest: neither the name nor the options say its format.
        typer.BadParameter: an option does not fit.
    """
    if delimiter == "\\t":
        delimiter = "\t"
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise typer.BadParameter(f"{delimiter!r} is not a delimiter; pass one character, such as ';'")
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # some encodings are not of text
    except (LookupError, ValueError):
        raise typer.BadParameter(
            f"{encoding!r} is not an encoding; pass a name like utf-8, latin-1 or cp1252"
        ) from None
    if kind is None and name != "-":
        kind = format_of(name)
    elif kind is None and delimiter:
        kind = RowFormat.CSV
    elif kind is None:
        kind = guessed(file)
        typer.echo(f"stdin is read as {kind}; pass --format if it is something else", err=True)
    if delimiter is not None and kind not in (RowFormat.CSV, RowFormat.TSV):
        raise typer.BadParameter(f"--delimiter goes with CSV, not with {kind}")
    return RowReading(kind, delimiter, encoding)


def _failed(run: Session, batch: TrackedBatch, sent: int, key: str | None) -> None:
    """Say what became of the batch after an error; without a key of the caller's it is cancelled."""
    said = f"stopped after {sent:,} messages were sent" if sent else "nothing was sent"
    if key is not None:
        run.remark(f"{said}; batch {batch.id} is open: run the same command again to go on with it")
        return
    with suppress(FaninError):  # the first error counts; an idle batch ends by itself
        batch.cancel()
    still = ", and consumers still get what was sent" if sent else ""
    run.remark(
        f"{said}; batch {batch.id} is cancelled{still}. Another run sends all rows{' again' if sent else ''},"
        " in a new batch; with --key it could go on"
    )


def _answer(
    run: Session, batch: Batch, *, sent: int, malformed: MalformedRow, unsent: dict[str, str]
) -> None:
    from fanin.cli.tables import outcome

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
    ended = [f"{batch.batch_id}  {batch.state}  {sent:,} sent", *outcome(batch, "failed")]
    run.answer(document, ", ".join(ended))
    _tell(run, malformed, unsent)


def _tell(run: Session, malformed: MalformedRow, unsent: dict[str, str]) -> None:
    if run.as_json:
        return
    for row, reason in malformed.named:
        run.remark(f"row {row}: {reason}")
    if malformed.count > len(malformed.named):
        run.remark(f"and {malformed.count - len(malformed.named):,} more malformed rows")
    for item, reason in unsent.items():
        run.remark(f"not sent: {item}: {reason}")
