"""Commands on frames: ``fanin frame open``, ``status`` and ``claim``."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli import parsing
from fanin.cli.commands import CommandGroup
from fanin.cli.options import Cursor, PageSize, UserKey
from fanin.cli.session import session
from fanin.client.conversions import seconds
from fanin.domain.frames import DEFAULT_TTL, OpenFrame, Ticket
from fanin.domain.limits import DEFAULT_ENVELOPE_LEASE
from fanin.wire import frames as wire

app = typer.Typer(
    cls=CommandGroup, name="frame", help="Frames: guaranteed delivery of a fixed number of envelopes."
)

FrameId = Annotated[int, typer.Argument(parser=parsing.batch_id, metavar="FRAME", help="Id of the frame.")]


@app.command("open")
def open_frame(
    ctx: typer.Context,
    size: Annotated[int, typer.Argument(min=1, metavar="N", help="Number of envelopes.")],
    *,
    source: Annotated[str, typer.Option(help="Name of the sender.")] = "",
    destination: Annotated[str, typer.Option(help="Name of the receiver.")] = "",
    reply_to: Annotated[
        str,
        typer.Option(
            metavar="QUEUE",
            help="URL or ARN of a queue tagged fanin:channel; it gets a notice when the frame ends.",
        ),
    ] = "",
    ttl: Annotated[
        str, typer.Option(metavar="SPAN", help="Request a repeat after this long without progress.")
    ] = f"{DEFAULT_TTL}s",
    user_key: UserKey = "",
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Idempotency key: a repeat prints the id of the same frame."),
    ] = None,
) -> None:
    """Open a frame of N envelopes, and print its id."""
    run = session(ctx)
    patience = seconds(parsing.span(ttl)) or 0
    frame = run.tracker.frames.open(
        OpenFrame(size, source, destination, reply_to, patience, user_key), key=key
    )
    run.answer(wire.FRAME.encode(frame), str(frame.frame_id))


@app.command()
def status(ctx: typer.Context, frame: FrameId, *, limit: PageSize = 100, cursor: Cursor = None) -> None:
    """Show the state of a frame, and its missing envelopes as half-open ranges FROM..TO."""
    run = session(ctx)
    found = run.tracker.frames.status(frame, cursor=cursor, limit=limit)
    spans = (f"missing {start}..{stop}" for start, stop in found.missing)
    run.answer(wire.FRAME.encode(found), f"{found.state}, {found.size} envelopes", *spans)
    run.more(found.cursor)


@app.command()
def claim(
    ctx: typer.Context,
    frame: FrameId,
    indices: Annotated[
        list[int], typer.Argument(min=0, metavar="INDEX...", help="Numbers of the envelopes, from 0.")
    ],
    *,
    lease: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="Seconds that the claim lasts.")
    ] = DEFAULT_ENVELOPE_LEASE,
) -> None:
    """Claim envelopes; each line has the outcome and the item id to acknowledge."""
    run = session(ctx)
    claims = run.tracker.frames.claim([Ticket(frame, index) for index in indices], lease=lease)
    run.answer(wire.CLAIMS.encode(claims), *(f"{claim.hold} {claim.item}" for claim in claims))
