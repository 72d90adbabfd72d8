"""JSON and back: what one end writes, the other reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain import acks, reports
from fanin.domain import batch as b
from fanin.domain.ids import Group
from fanin.errors import InvalidRequest
from fanin.wire import ledger as wire
from fanin.wire import reports as wire_reports

times = st.integers(0, 4_102_444_800_000)
batches = st.builds(
    b.Batch,
    batch_id=st.integers(0, 2**53 - 1),
    salt=st.just(b""),
    created_at=times,
    touched_at=times,
    closed_at=st.none() | times,
    ended_at=st.none() | times,
    deadline=st.none() | times,
    expires_at=times.map(lambda ms: ms // 1000),
    metadata=st.dictionaries(st.text(), st.text()),
    user_key=st.text(),
    pending_bound=st.just(0),
)
receipts = st.lists(st.builds(acks.Receipt))
CASES: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "batch": (batches, wire.encode_batch, wire.decode_batch),
    "open": (
        st.builds(b.OpenBatch, deadline=st.none() | times, metadata=st.dictionaries(st.text(), st.text())),
        wire.encode_open,
        wire.decode_open,
    ),
    "group": (st.builds(Group), wire.encode_group, wire.decode_group),
    "progress": (
        st.builds(reports.Progress, batch=batches),
        wire_reports.encode_progress,
        wire_reports.decode_progress,
    ),
    "missing": (st.builds(reports.Missing), wire_reports.encode_missing, wire_reports.decode_missing),
    "failures": (st.builds(reports.Failures), wire_reports.encode_failures, wire_reports.decode_failures),
    "batches": (
        st.builds(reports.Batches, batches=st.lists(batches, max_size=2).map(tuple)),
        wire_reports.encode_batches,
        wire_reports.decode_batches,
    ),
    "expired": (st.builds(reports.Expired), wire_reports.encode_expired, wire_reports.decode_expired),
    "verdict": (
        st.builds(reports.Verdict, batch=batches),
        wire_reports.encode_verdict,
        wire_reports.decode_verdict,
    ),
    "receipts": (receipts, wire.encode_receipts, wire.decode_receipts),
    "acks": (
        st.builds(
            acks.Acks,
            items=st.lists(st.text(), min_size=1),
            ranges=st.lists(st.builds(acks.ItemRange), min_size=1),
            counts=st.lists(st.builds(acks.Count), min_size=1),
            failures=st.lists(st.builds(acks.Failure), min_size=1),
        ),
        wire.encode_acks,
        wire.decode_acks,
    ),
}


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_what_is_written_is_read_the_same(name: str, data: st.DataObject) -> None:
    values, encode, decode = CASES[name]
    value = data.draw(values)
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_a_batch_keeps_its_salt_and_its_bookkeeping_to_itself() -> None:
    batch = b.Batch(7, b"secret-of-fanin!", 1, 1, 1, 60, 60, limit=3, pending_bound=2)
    body = wire.encode_batch(batch)
    assert "secret" not in str(body)
    assert not {"salt", "pending_bound", "shelf", "due_at"} & set(body)
    assert wire.decode_batch(body) == replace(batch, salt=b"", pending_bound=0)


def test_what_is_left_to_the_service_is_left_out() -> None:
    assert wire.encode_open(b.OpenBatch()) == {
        "user_key": "",
        "mode": "exact",
        "on_deadline": "time_out",
        "metadata": {},
    }
    assert wire.decode_open({"lifetime": None, "deadline": None}) == b.OpenBatch()
    assert wire.encode_acks(acks.Acks(items=["x"])) == {"items": ["x"]}
    assert wire.decode_acks({"ranges": [{"group": "g"}]}).ranges == [acks.ItemRange("g")]


@given(ms=times)
def test_times_agree_with_the_standard_library(ms: int) -> None:
    text = wire.encode_time(ms)
    assert datetime.fromisoformat(text) == datetime.fromtimestamp(ms // 1000, UTC).replace(
        microsecond=ms % 1000 * 1000
    )
    assert wire.decode_time(text) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00.5z", 500),
        ("1970-01-01T02:00:00.123456+02:00", 123),
        ("1969-12-31T23:00:00-01:00", 0),
    ],
)
def test_times_are_read_in_all_forms_of_rfc_3339(text: str, ms: int) -> None:
    assert wire.decode_time(text) == ms


@pytest.mark.parametrize(
    "text",
    ["", "now", "1970-01-01", "1970-01-01T00:00:00", "1970-02-30T00:00:00Z", "1970-01-01T24:01:00Z",
     "1970-01-01 00:00:00Z", "१९७०-01-01T00:00:00Z", "1970-01-01T00:00:00Z\n", "7"],
)  # fmt: skip
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="RFC 3339"):
        wire.decode_time(text)
