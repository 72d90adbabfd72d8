"""Frames on the wire: what is left out, tickets, and defaults that are those of the values."""

from fanin.domain.frames import Claim, ClaimEnvelopes, Hold, OpenFrame, Ticket
from fanin.wire.patterns import CLAIM, CLAIM_ENVELOPES, OPEN_FRAME


def test_an_opening_says_only_what_was_given():
    assert OPEN_FRAME.encode(OpenFrame(3, ttl=90)) == {"size": 3, "ttl": 90}
    assert OPEN_FRAME.encode(OpenFrame(3, source="orders"))["source"] == "orders"
    assert OPEN_FRAME.decode({"size": 3}) == OpenFrame(3)


def test_tickets_are_called_claims():
    wanted = ClaimEnvelopes((Ticket(7, 0), Ticket(7, 2)), lease=5)
    body = CLAIM_ENVELOPES.encode(wanted)
    assert body["claims"] == [{"frame_id": 7, "index": 0}, {"frame_id": 7, "index": 2}]
    assert CLAIM_ENVELOPES.decode(body) == wanted


def test_a_claim_stands_beside_its_ticket_in_one_object():
    claim = Claim(Ticket(7, 2), Hold.CLAIMED, "item", 9)
    body = CLAIM.encode(claim)
    assert body == {"frame_id": 7, "index": 2, "hold": "claimed", "item": "item", "until": 9}
    assert CLAIM.decode(body) == claim


def test_the_document_names_the_defaults_of_the_values():
    assert OPEN_FRAME.definition["properties"]["ttl"]["default"] == OpenFrame(1).ttl
    assert CLAIM_ENVELOPES.definition["properties"]["lease"]["default"] == ClaimEnvelopes([]).lease
