"""Scatters: what is derived from how far they are, and the defaults of a request."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.batch import Batch, Kind, State
from fanin.domain.claim_checks import ClaimCheckRequest
from fanin.domain.scatter import Gathered, Reply, ReplyReceipt, Scatter, Scattered

BATCH = Batch(
    batch_id=7,
    salt=b"s",
    created_at=0,
    touched_at=0,
    expires_at=1,
    open_idle_ttl=60,
    closed_idle_ttl=60,
    state=State.CLOSED,
    kind=Kind.SCATTER,
    items=5,
)
SCATTERED = Scattered(BATCH, "c", received=0, failed=0, retries=0, max_retries=2, quorum=None)


@given(received=st.integers(0, 10), failed=st.integers(0, 10), missing=st.integers(0, 10))
def test_each_recipient_replied_or_failed_or_is_missing(received, failed, missing):
    batch = replace(BATCH, items=received + failed + missing)
    scattered = replace(SCATTERED, batch=batch, received=received, failed=failed)

    assert scattered.missing == missing
    assert scattered.recipients == received + failed + missing


@pytest.mark.parametrize("state", State)
def test_it_is_starting_while_its_batch_is_open_and_ready_when_its_batch_has_ended(state):
    scattered = replace(SCATTERED, batch=replace(BATCH, state=state))

    assert scattered.starting is (state is State.OPEN)
    assert scattered.ready is (state not in {State.OPEN, State.CLOSED})


@pytest.mark.parametrize(
    ("first", "late", "duplicate"), [(True, False, False), (False, True, False), (False, False, True)]
)
def test_a_reply_is_the_first_or_late_or_a_duplicate(*, first, late, duplicate):
    for different in (True, False):
        receipt = ReplyReceipt("7:g:0", 7, State.CLOSED, first=first, late=late, different=different)
        assert receipt.duplicate is duplicate


def test_an_upload_is_of_bytes_unless_told():
    assert ClaimCheckRequest("7:g:0", 1).content_type == "application/octet-stream"


def test_what_is_left_out_takes_its_default():
    """A scatter waits two minutes for all, and sends twice more."""
    scatter = Scatter("x")
    assert (scatter.timeout, scatter.max_retries, scatter.quorum, scatter.topic) == (120, 2, None, None)
    assert (scatter.correlation_id, scatter.type, scatter.user_key) == (None, "", "")
    assert (len(scatter.recipients), scatter.where, scatter.attributes, scatter.metadata) == (0, {}, {}, {})
    assert Reply("7:g:0") == Reply("7:g:0", payload=None, claim=None)
    assert Gathered(()).cursor is None
    receipt = ReplyReceipt("7:g:0", 7, State.CLOSED)
    assert (receipt.first, receipt.different, receipt.late) == (False, False, False)
