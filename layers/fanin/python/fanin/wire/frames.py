"""The JSON form of frames and claims, for both ends; see ``fanin.wire.ledger``."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.domain.batch import State
from fanin.domain.frames import DEFAULT_TTL, Claim, Frame, Hold, OpenFrame, Ticket
from fanin.wire.ledger import Json


def encode_open(request: OpenFrame) -> Json:
    body = {
        "size": request.size,
        "source": request.source,
        "destination": request.destination,
        "reply_to": request.reply_to,
        "ttl": request.ttl,
        "user_key": request.user_key,
    }
    return {name: value for name, value in body.items() if value != ""}


def decode_open(body: Json) -> OpenFrame:
    return OpenFrame(
        size=body["size"],
        source=body.get("source", ""),
        destination=body.get("destination", ""),
        reply_to=body.get("reply_to", ""),
        ttl=body.get("ttl", DEFAULT_TTL),
        user_key=body.get("user_key", ""),
    )


def encode_frame(frame: Frame) -> Json:
    return {
        "frame_id": frame.frame_id,
        "state": frame.state.value,
        "size": frame.size,
        "ttl": frame.ttl,
        "about": dict(frame.about),
        "user_key": frame.user_key,
        "missing": [list(span) for span in frame.missing],
        "cursor": frame.cursor,
    }


def decode_frame(body: Json) -> Frame:
    return Frame(
        frame_id=body["frame_id"],
        state=State(body["state"]),
        size=body["size"],
        ttl=body["ttl"],
        about=body["about"],
        user_key=body["user_key"],
        missing=tuple((start, stop) for start, stop in body["missing"]),
        cursor=body["cursor"],
    )


def encode_tickets(tickets: Sequence[Ticket], lease: int) -> Json:
    claims = [{"frame_id": ticket.frame_id, "index": ticket.index} for ticket in tickets]
    return {"claims": claims, "lease": lease}


def decode_tickets(body: Json) -> list[Ticket]:
    return [Ticket(claim["frame_id"], claim["index"]) for claim in body["claims"]]


def encode_claims(claims: Sequence[Claim]) -> Json:
    return {
        "claims": [
            {
                "frame_id": claim.ticket.frame_id,
                "index": claim.ticket.index,
                "hold": claim.hold.value,
                "item": claim.item,
                "until": claim.until,
            }
            for claim in claims
        ]
    }


def decode_claims(body: Json) -> list[Claim]:
    return [
        Claim(Ticket(claim["frame_id"], claim["index"]), Hold(claim["hold"]), claim["item"], claim["until"])
        for claim in body["claims"]
    ]
