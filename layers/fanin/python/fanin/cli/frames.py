"""Commands on frames: fanin frame open, status, claim."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli import parsing
from fanin.cli.options import Cursor, PageSize, UserKey
from fanin.cli.session import session
from fanin.client.conversions import seconds
from fanin.domain.frames import DEFAULT_LEASE, DEFAULT_TTL, OpenFrame, Ticket
from fanin.wire import frames as wire

app = typer.Typer(name="frame", help="Frames: envelopes that are delivered for sure, and handled once.")

FrameId = Annotated[int, typer.Argument(parser=parsing.batch_id, metavar="FRAME", help="Id of the frame.")]


@app.command("open")
def open_frame(
    ctx: typer.Context,
    size: Annotated[int, typer.Argument(min=1, metavar="N", help="How many envelopes.")],
    *,
    source: Annotated[str, typer.Option(help="Name of the sender.")] = "",
    destination: Annotated[str, typer.Option(help="Name of the receiver.")] = "",
    reply_to: Annotated[
        str,
        typer.Option(
            metavar="QUEUE", help="URL or ARN of a queue tagged fanin:channel, to be told of its end."
        ),
    ] = "",
    ttl: Annotated[
        str, typer.Option(metavar="SPAN", help="Request a repeat after so long without progress.")
    ] = f"{DEFAULT_TTL}s",
    user_key: UserKey = "",
) -> None:
    """Ask for a frame of N envelopes; prints its id."""
    run = session(ctx)
    patience = seconds(parsing.span(ttl)) or 0
    frame = run.tracker.frames.open(OpenFrame(size, source, destination, reply_to, patience, user_key))
    run.answer(wire.encode_frame(frame), str(frame.frame_id))


@app.command()
def status(ctx: typer.Context, frame: FrameId, *, limit: PageSize = 100, cursor: Cursor = None) -> None:
    """Say where a frame is, and which envelopes are missing, as ranges FROM..TO."""
    run = session(ctx)
    seen = run.tracker.frames.status(frame, cursor=cursor, limit=limit)
    spans = (f"missing {start}..{stop}" for start, stop in seen.missing)
    run.answer(wire.encode_frame(seen), f"{seen.state}, {seen.size} envelopes", *spans)
    run.more(seen.cursor)


@app.command()
def claim(
    ctx: typer.Context,
    frame: FrameId,
    indices: Annotated[list[int], typer.Argument(min=0, metavar="INDEX...", help="Which envelopes, from 0.")],
    *,
    lease: Annotated[int, typer.Option(min=1, metavar="SECONDS", help="For how long.")] = DEFAULT_LEASE,
) -> None:
    """Claim envelopes to handle; prints what may be done and the item id to ack, a line each."""
    run = session(ctx)
    claims = run.tracker.frames.claim([Ticket(frame, index) for index in indices], lease=lease)
    run.answer(wire.encode_claims(claims), *(f"{claim.hold} {claim.item}" for claim in claims))
