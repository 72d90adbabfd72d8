"""Frames over HTTPS do what they do directly."""

from __future__ import annotations

from fanin.app.api import Fanin
from fanin.domain.batch import State
from fanin.domain.frames import Hold, OpenFrame, Ticket


def test_a_frame_is_the_same_over_the_api_and_on_the_stores(services: Fanin) -> None:
    # Given a frame of three envelopes
    frame = services.frames.open(OpenFrame(3, source="orders", ttl=90, user_key="k"))
    assert (frame.size, frame.ttl, frame.about, frame.user_key) == (3, 90, {"source": "orders"}, "k")

    # When two are claimed, and one of them is acknowledged
    tickets = [Ticket(frame.frame_id, 0), Ticket(frame.frame_id, 1)]
    claims = services.frames.claim(tickets, lease=5)
    services.ledger.mark([claims[1].item]).whole()

    # Then the frame says what is missing, and claims what may be done
    assert [claim.ticket for claim in claims] == tickets
    assert [claim.hold for claim in services.frames.claim(tickets)] == [Hold.LEASED, Hold.DONE]
    now = services.frames.status(frame.frame_id)
    assert (now.state, now.missing, now.cursor) == (State.CLOSED, ((0, 1), (2, 3)), None)
