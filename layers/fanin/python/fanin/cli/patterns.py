"""Commands on patterns: ``fanin scatter``, ``replies``, ``frame`` and ``buffer``."""

import json
from datetime import timedelta

import typer

from fanin.cli import options, parsing
from fanin.cli.commands import argument, flag, group, option
from fanin.cli.listing import FactSheet, Table
from fanin.cli.parsing import Pair
from fanin.cli.session import session, with_stdin
from fanin.client.conversions import seconds
from fanin.domain.buffer import Level
from fanin.domain.frames import DEFAULT_TTL, OpenFrame, Ticket
from fanin.domain.ids import parse_batch_id
from fanin.domain.limits import DEFAULT_ENVELOPE_LEASE
from fanin.domain.scatter import MAX_RETRIES, Gathered, Scattered
from fanin.wire.patterns import BUFFER, BUFFERS, CLAIMS, FRAME, GATHERED, LEVEL, RELEASED, SCATTERED, TAKEN

app = typer.Typer()
scatter = group("scatter", "Scatter-gather: send a message to many recipients, and gather their replies.")
frames = group("frame", "Frames: guaranteed delivery of a fixed number of envelopes.")
buffers = group("buffer", "Bounded buffers: queues that make producers wait when they are full.")
for commands in (scatter, frames, buffers):
    app.add_typer(commands)


@scatter.command()
def start(
    ctx: typer.Context,
    body: str = argument("Text of the message.", metavar="BODY"),
    *,
    topic: str | None = option("Send to everyone who is registered in this topic."),
    where: list[Pair] | None = options.pairs("Send only to registrations with this attribute"),
    to: list[str] | None = option(
        "Send to this queue, given by URL or ARN, or to TOPIC/NAME; may be repeated.", metavar="QUEUE"
    ),
    kind: str = option("Type of the message, by which recipients tell what is asked.", "--type", default=""),
    correlation_id: str | None = option("A correlation id of your own; no running scatter may have it."),
    timeout: timedelta = options.spans(
        "Send again to those missing after this long, such as 30s or 2m.", "2m", default=timedelta(minutes=2)
    ),
    max_retries: int = option("How often to send again at most.", default=MAX_RETRIES),
    quorum: float | None = option(
        "End after this many replies: a number like 5, or a share like 0.8.",
        parser=parsing.quorum,
        metavar="K|SHARE",
    ),
    user_key: str = options.USER_KEY,
    metadata: list[Pair] | None = options.METADATA,
    total: list[str] | None = options.TOTAL_NAMES,
    key: str | None = option("Idempotency key: repeating the command with it starts nothing more."),
) -> None:
    """Send a message to a topic or to queues, and print the batch id of the scatter."""
    if (topic is None) == (not to):
        raise typer.BadParameter("pass either --topic, or --to for each queue")
    run = session(ctx)
    started = run.tracker.scatters.start(
        topic if topic is not None else list(to or ()),
        body,
        where=dict(where or ()),
        type=kind,
        correlation_id=correlation_id,
        timeout=timeout,
        max_retries=max_retries,
        quorum=quorum,
        user_key=user_key,
        metadata=dict(metadata or ()),
        totals=total or (),
        key=key,
    )
    run.answer(SCATTERED.encode(started), str(started.batch.batch_id))


@scatter.command()
def show(ctx: typer.Context, batch: int = options.BATCH_ID) -> None:
    """Show how many recipients replied, failed and are missing, counted exactly."""
    run = session(ctx)
    found = run.tracker.scatters.status(batch)
    run.answer(SCATTERED.encode(found), FactSheet(_facts(found)))


@app.command()
def replies(
    ctx: typer.Context,
    batch: int = options.BATCH_ID,
    limit: int = option("Most replies on one page.", "--limit", default=100, min=1, max=100),
    cursor: str | None = options.CURSOR,
    every: bool = options.EVERY_PAGE,
) -> None:
    """List the replies to a scatter, in the order of the recipients."""
    run = session(ctx)
    scatters = run.tracker.scatters
    if every:
        page = Gathered(tuple(scatters.replies(batch)))
    else:
        page = scatters.replies_page(batch, cursor=cursor, limit=limit)
    shown = Table("recipient", "name", "reply", right=("recipient",), empty="nobody has replied")
    for reply in page.replies:
        said = json.dumps(reply.payload, ensure_ascii=False) if reply.claim is None else reply.url
        shown.add_row(str(reply.ordinal), reply.name, said)
    run.answer(GATHERED.encode(page), shown, cursor=page.cursor)


def _facts(found: Scattered) -> list[tuple[str, object]]:
    from fanin.cli.tables import total_facts

    return [
        ("scatter", str(found.batch.batch_id)),
        ("state", f"{found.batch.state}, partial" if found.batch.partial else str(found.batch.state)),
        ("correlation id", found.correlation_id),
        ("recipients", "being listed" if found.starting else f"{found.batch.items:,}"),
        ("received", f"{found.received:,}"),
        ("failed", f"{found.failed:,}"),
        ("missing", f"{found.missing:,}"),
        ("sent again", f"{found.retries} of {found.max_retries} times"),
        ("quorum", found.quorum),
        *total_facts(found.batch),
    ]


FRAME_ID = argument("Id of the frame.", parser=parse_batch_id, metavar="FRAME")


@frames.command("open")
def open_frame(
    ctx: typer.Context,
    size: int = argument("Number of envelopes.", min=1, metavar="N"),
    *,
    source: str = option("Name of the sender.", default=""),
    destination: str = option("Name of the receiver.", default=""),
    reply_to: str = option(
        "URL or ARN of a queue tagged fanin:channel; it gets a notice when the frame ends.",
        default="",
        metavar="QUEUE",
    ),
    ttl: timedelta = options.spans(
        "Request a repeat after this long without progress.",
        f"{DEFAULT_TTL}s",
        default=timedelta(seconds=DEFAULT_TTL),
    ),
    user_key: str = options.USER_KEY,
    key: str | None = option("Idempotency key: a repeat prints the id of the same frame.", metavar="KEY"),
) -> None:
    """Open a frame of N envelopes, and print its id."""
    run = session(ctx)
    wanted = OpenFrame(size, source, destination, reply_to, seconds(ttl) or 0, user_key)
    frame = run.tracker.frames.open(wanted, key=key)
    run.answer(FRAME.encode(frame), str(frame.frame_id))


@frames.command("status")
def frame_status(
    ctx: typer.Context,
    frame: int = FRAME_ID,
    limit: int = options.PAGE_SIZE,
    cursor: str | None = options.CURSOR,
) -> None:
    """Show the state of a frame, and its missing envelopes as half-open ranges FROM..TO."""
    run = session(ctx)
    found = run.tracker.frames.status(frame, cursor=cursor, limit=limit)
    spans = (f"missing {start}..{stop}" for start, stop in found.missing)
    run.answer(FRAME.encode(found), f"{found.state}, {found.size} envelopes", *spans, cursor=found.cursor)


@frames.command()
def claim(
    ctx: typer.Context,
    frame: int = FRAME_ID,
    indices: list[int] = argument("Numbers of the envelopes, from 0.", min=0, metavar="INDEX..."),
    lease: int = option(
        "Seconds that the claim lasts.", default=DEFAULT_ENVELOPE_LEASE, min=1, metavar="SECONDS"
    ),
) -> None:
    """Claim envelopes; each line has the outcome and the item id to acknowledge."""
    run = session(ctx)
    claims = run.tracker.frames.claim([Ticket(frame, index) for index in indices], lease=lease)
    run.answer(CLAIMS.encode(claims), *(f"{claim.hold} {claim.item}" for claim in claims))


NAME = argument("Name of the buffer.", metavar="BUFFER")


@buffers.command()
def define(
    ctx: typer.Context,
    name: str = NAME,
    limit: int = argument("Most items that may be pending at a time.", min=1),
    queue: str | None = option(
        "URL or ARN of a queue tagged fanin:channel; without it a queue is created.", metavar="QUEUE"
    ),
) -> None:
    """Create a buffer or change its limit, and print the URL of its queue."""
    run = session(ctx)
    buffer = run.tracker.buffers.define(name, limit, queue=queue)
    run.answer(BUFFER.encode(buffer), buffer.queue)


@buffers.command("status")
def buffer_status(ctx: typer.Context, name: str = NAME) -> None:
    """Show how full a buffer is."""
    run = session(ctx)
    level = run.tracker.buffers.status(name)
    run.answer(LEVEL.encode(level), _describe(level))


@buffers.command("list")
def list_buffers(
    ctx: typer.Context, limit: int = options.PAGE_SIZE, cursor: str | None = options.CURSOR
) -> None:
    """List the buffers and their limits."""
    run = session(ctx)
    page = run.tracker.buffers.list(cursor=cursor, limit=limit)
    shown = Table("buffer", "limit", "queue", right=("limit",), empty="no buffer")
    for buffer in page.buffers:
        shown.add_row(buffer.name, buffer.limit, buffer.queue)
    run.answer(BUFFERS.encode(page), shown, cursor=page.cursor)


@buffers.command()
def put(
    ctx: typer.Context,
    name: str = NAME,
    payloads: list[str] = argument("Payloads; - reads one from each line of stdin.", metavar="TEXT..."),
    no_wait: bool = flag("Fail at once if the buffer is full.", "--no-wait"),
    key: str = option(
        "Idempotency keys of the payloads are PREFIX/1, PREFIX/2 and so on: run the same command"
        " again, and nothing is put in twice.",
        default="",
        metavar="PREFIX",
    ),
) -> None:
    """Put payloads into a buffer, waiting while it is full.

    Prints the item id of each payload as soon as it is in. An error or Ctrl-C says how many are in. Then
    run the same command again if it had --key, or else with the payloads that are left.
    """
    run = session(ctx)
    producer = run.tracker.producer(name)
    send = producer.put_now if no_wait else producer.put
    items: list[str] = []
    try:
        for number, text in enumerate(with_stdin(payloads), 1):
            (item,) = send(text, key=f"{key}/{number}" if key else None).items
            items.append(item)
            if not run.as_json:
                typer.echo(item)
    except BaseException:  # an error, or Ctrl-C
        if run.as_json:
            run.answer({"items": items})
        run.remark(_stopped(name, len(items), key))
        raise
    run.answer({"items": items})


def _stopped(name: str, count: int, key: str) -> str:
    """How many payloads are in, and how to go on."""
    done = f"buffer {name}: {count:,} payloads are in"
    if key:
        return f"{done}; run the same command again to go on, and nothing is put in twice"
    return f"{done}; go on with payload {count + 1:,}, which may be in, too, if its answer was lost"


@buffers.command()
def take(
    ctx: typer.Context,
    name: str = NAME,
    most: int = option("Most payloads to take.", default=1, min=1, max=10),
    wait: int = option("Seconds to wait for work.", default=20, min=0, max=20),
) -> None:
    """Take payloads out of a buffer; each line has a receipt, a space and a payload."""
    run = session(ctx)
    work = run.tracker.buffers.take(name, most=most, wait=wait)
    run.answer(TAKEN.encode(work))
    if not run.as_json:
        for one in work:
            typer.echo(f"{one.receipt} {one.payload}")  # not through the console, which would expand tabs


@buffers.command()
def done(
    ctx: typer.Context,
    name: str = NAME,
    receipts: list[str] = argument("Receipts that take printed.", metavar="RECEIPT..."),
) -> None:
    """Mark payloads done, which frees their slots."""
    run = session(ctx)
    released = run.tracker.buffers.done(name, receipts)
    run.answer(RELEASED.encode(released), f"{released.done} done, {released.late} late")


@buffers.command()
def delete(ctx: typer.Context, name: str = NAME, yes: bool = options.YES) -> None:
    """Delete a buffer and the payloads in it; asks before."""
    run = session(ctx)
    run.confirm(f"Delete the buffer {name} and the payloads in it?", yes=yes)
    run.tracker.buffers.delete(name)
    run.answer({"deleted": name}, f"deleted {name}")


def _describe(level: Level) -> str:
    who = f"{level.count} waiting" if level.count >= 0 else f"{-level.count} consumers waiting"
    draining = ", draining" if level.draining else ""
    return f"{level.pending} of {level.buffer.limit} slots in use: {who}, {level.taken} taken{draining}"
