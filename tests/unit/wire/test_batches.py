"""Batches on the wire: what is left out, and what stays inside."""

from dataclasses import replace

from fanin.domain import batch as b
from fanin.wire.batches import BATCH, OPEN_BATCH


def test_a_batch_keeps_its_salt_and_its_bookkeeping_to_itself():
    batch = b.Batch(7, b"secret-of-fanin!", 1, 1, 1, 60, 60, limit=3, pending_bound=2)
    body = BATCH.encode(batch)
    assert "secret" not in str(body)
    assert not {"salt", "pending_bound", "shelf", "due_at"} & set(body)
    assert BATCH.decode(body) == replace(batch, salt=b"", pending_bound=0)


def test_an_ended_batch_shows_what_follows_from_its_row():
    row = b.Batch(7, b"", 2_000, 1_000, 9, 60, 60, items=2, state=b.State.COMPLETE, held_more=True)
    body = BATCH.encode(replace(row, attention=b.Trouble.HELD))
    assert body["touched_at"] == body["created_at"] == "1970-01-01T00:00:02.000Z"
    assert (body["held_more"], body.get("attention")) == (False, None)


def test_what_is_left_to_the_service_is_left_out():
    """The digest of an opening's idempotency key is made of this form, so it must not change."""
    assert OPEN_BATCH.encode(b.OpenBatch()) == {
        "user_key": "",
        "mode": "exact",
        "on_deadline": "time_out",
        "metadata": {},
    }
    assert OPEN_BATCH.decode({"lifetime": None, "deadline": None}) == b.OpenBatch()
