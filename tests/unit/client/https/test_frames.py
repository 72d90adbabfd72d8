"""Frames over HTTPS do what they do directly."""

from __future__ import annotations

import json

from fanin.app.api import Fanin
from fanin.client.https.services import HttpsServices
from fanin.domain.batch import State
from fanin.domain.frames import Hold, OpenFrame, Ticket
from fanin.domain.limits import DEFAULT_ENVELOPE_LEASE
from tests.unit.client.https.conftest import Gateway


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


def test_what_is_missing_comes_a_page_at_a_time(services: Fanin) -> None:
    frame = services.frames.open(OpenFrame(5))
    claims = services.frames.claim([Ticket(frame.frame_id, index) for index in (1, 3)])
    services.ledger.mark([claim.item for claim in claims]).whole()

    ranges, cursor = [], None
    while True:
        page = services.frames.status(frame.frame_id, cursor=cursor, limit=1)
        ranges += page.missing
        cursor = page.cursor
        if cursor is None:
            break

    assert ranges == [(0, 1), (2, 3), (4, 5)]


def test_a_claim_says_how_long(over_https: HttpsServices, gateway: Gateway) -> None:
    frame = over_https.frames.open(OpenFrame(1))
    gateway.requests.clear()
    over_https.frames.claim([Ticket(frame.frame_id, 0)])
    over_https.frames.claim([Ticket(frame.frame_id, 0)], lease=7)
    assert [json.loads(request.body or b"")["lease"] for request in gateway.requests] == [
        DEFAULT_ENVELOPE_LEASE,
        7,
    ]


def test_a_claim_whose_answer_was_lost_is_made_again(over_https: HttpsServices, gateway: Gateway) -> None:
    frame = over_https.frames.open(OpenFrame(1))
    gateway.lost, gateway.requests[:] = 1, []
    claims = over_https.frames.claim([Ticket(frame.frame_id, 0)])
    assert len(gateway.requests) == 2
    assert [claim.hold for claim in claims] == [Hold.LEASED]  # by the call whose answer was lost
