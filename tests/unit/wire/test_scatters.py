"""Scatters on the wire: what is left out, and payloads that are null."""

from fanin.domain.scatter import Recipient, Reply, Scatter
from fanin.wire.patterns import REPLY, SCATTER


def test_a_start_says_only_whom_it_is_for():
    """The digest of a start's idempotency key is made of this form, so it must not change."""
    assert SCATTER.encode(Scatter("hello", topic="cars")) == {
        "body": "hello",
        "topic": "cars",
        "type": "",
        "attributes": {},
        "timeout": 120,
        "max_retries": 2,
        "user_key": "",
        "metadata": {},
    }
    named = SCATTER.encode(Scatter("hello", [Recipient("", "q")], where={"colour": "red"}))
    assert named["recipients"] == [{"channel": "q", "name": ""}]
    assert named["where"] == {"colour": "red"}
    assert SCATTER.decode({"body": "x", "recipients": [{"channel": "q"}]}).recipients == (Recipient("", "q"),)


def test_a_payload_may_be_null_and_a_claim_stands_alone():
    assert REPLY.encode(Reply("i")) == {"item": "i", "payload": None}
    assert REPLY.encode(Reply("i", claim="k")) == {"item": "i", "claim": "k"}
    assert REPLY.decode({"item": "i"}) == Reply("i")
