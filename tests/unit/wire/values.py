"""Values of every shape, for tests of what is written and read."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from fanin.domain import (
    acks,
    buffer,
    claim_checks,
    directory,
    frames,
    picture,
    redrives,
    reports,
    routing,
    scatter,
    selection,
    tolerance,
)
from fanin.domain import batch as b
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.ids import Group, issue
from fanin.wire import batches, buffers, items, scatters, selections
from fanin.wire import directory as directory_shapes
from fanin.wire import frames as frame_shapes
from fanin.wire import picture as picture_shapes
from fanin.wire import redrives as redrive_shapes
from fanin.wire.shapes import Shape

times = st.integers(0, 4_102_444_800_000)
maybe_times = st.none() | times
numbers = st.integers(0, 2**40)
dollars = st.floats(0, 1e15)
sums = st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True), st.integers(), max_size=4)
values = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True), st.integers(-(2**53), 2**53), max_size=4
)
strings = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
a_tolerance = st.builds(
    tolerance.Tolerance,
    count=st.none() | numbers,
    percent=st.none() | st.floats(0, 100),
    min_sample=st.none() | st.integers(1, 2**40),
)
COMMON = {"int": numbers, "int | None": st.none() | numbers}


def tuples(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


def built(kind: type[Any], **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of a class: its whole numbers are drawn from 0 on, also those that have a default."""
    common = {one.name: COMMON[one.type] for one in fields(kind) if one.type in COMMON}
    return st.builds(kind, **{**common, **given})


batch = st.builds(
    b.Batch,
    batch_id=st.integers(0, 2**53 - 1),
    salt=st.just(b""),
    created_at=times,
    touched_at=times,
    closed_at=maybe_times,
    ended_at=maybe_times,
    deadline=maybe_times,
    expires_at=times.map(lambda ms: ms // 1000),
    open_idle_ttl=numbers,
    closed_idle_ttl=numbers,
    items=numbers,
    acked=numbers,
    limit=st.none() | numbers,
    metadata=strings,
    pending_bound=st.just(0),
    retries=st.just(0),
    failing=st.just(0),
    on_failure=st.sampled_from(b.OnFailure),
    tolerated_failures=st.none() | a_tolerance,
    cause=st.none() | st.sampled_from(b.Cause),
    held=numbers,
    totals=sums,
    totals_before=sums,
).map(lambda row: replace(row, touched_at=row.active_at, held_more=row.may_hold_more))
kept = st.builds(
    KeptMessage,
    body=st.text(max_size=9),
    attributes=st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.builds(MessageAttribute, st.just("String"), st.text(max_size=5))
        | st.builds(MessageAttribute, st.just("Binary"), st.binary(max_size=5)),
        max_size=3,
    ),
    group_id=st.none() | st.text(min_size=1, max_size=5),
)
failure = st.builds(
    acks.Failure,
    reason=st.text(max_size=9),
    message=st.none() | kept,
    attempts=st.integers(0, 9),
    totals=values,
)
result = st.builds(acks.Result, item=st.text(max_size=9), totals=values)
failed_item = built(
    reports.FailedItem,
    failed_at=maybe_times,
    kept=st.booleans(),
    redriven=st.none() | st.text(max_size=5),
    held=st.booleans(),
)
a_buffer = st.builds(buffer.Buffer, limit=st.integers(1, 1_000_000), batch_id=numbers)
registration = st.builds(directory.Registration, attributes=strings, lease=numbers, since=times, until=times)
route = st.builds(
    routing.Route,
    pattern=st.dictionaries(st.text(max_size=3), json, max_size=2),
    attributes=strings,
    since=times,
)


ordinal_ranges = tuples(
    st.builds(selection.OrdinalRange, start=st.integers(0, 2**40 - 1), stop=st.integers(1, 2**40))
)
redriving = built(
    redrives.Redriving,
    not_kept_items=tuples(numbers),
    refused=st.dictionaries(st.text(max_size=9), numbers, max_size=3),
    errors=tuples(st.text(min_size=1, max_size=9)),
    ranges=ordinal_ranges,
    queue_url=st.none() | st.text(min_size=1, max_size=9),
    started_at=maybe_times,
)


ticket = built(frames.Ticket, index=st.integers(0, 2**32 - 1))


@st.composite
def missing_ranges(draw: st.DrawFn) -> reports.MissingRange:
    start, size = draw(st.integers(0, 2**40 - 100)), draw(st.integers(1, 99))
    return reports.MissingRange(start, start + size, issue(7, start, size, b"salt-of-a-batch!").prefix)


CASES: dict[str, tuple[Shape[Any], st.SearchStrategy[Any]]] = {
    "OpenBatch": (
        batches.OPEN_BATCH,
        st.builds(
            b.OpenBatch,
            user_key=st.text(max_size=256),
            idle_ttl=st.none() | st.integers(60, 31_536_000),
            lifetime=st.none() | st.integers(60, 31_536_000),
            deadline=maybe_times,
            limit=st.none() | st.integers(1, 1_000_000),
            metadata=strings,
            on_failure=st.sampled_from(b.OnFailure),
            tolerated_failures=st.none() | a_tolerance,
            kind=st.just(b.Kind.BATCH),
            size=st.none(),
            totals=sums.map(tuple),
        ),
    ),
    "Batch": (batches.BATCH, batch),
    "BatchPage": (batches.BATCHES, st.builds(reports.Batches, batches=tuples(batch))),
    "Progress": (
        batches.PROGRESS,
        built(
            reports.Progress,
            batch=batch,
            cost=st.none()
            | st.builds(
                reports.Estimate,
                dollars=dollars,
                at_least=dollars,
                at_most=dollars,
                region=st.text(max_size=9),
                since=st.text(max_size=9),
                estimate=st.just(True),
            ),
        ),
    ),
    "Group": (
        batches.GROUP,
        st.builds(Group, batch_id=numbers, id=st.uuids().map(str), upto=st.integers(1, 2**32 - 1)),
    ),
    "Expired": (batches.EXPIRED, built(reports.Expired)),
    "Verdict": (
        batches.VERDICT,
        built(reports.Verdict, batch=batch, disagreements=tuples(st.text(max_size=5))),
    ),
    "Tolerance": (batches.TOLERANCE, a_tolerance),
    "Selection": (
        selections.SELECTION,
        st.builds(
            selection.Selection,
            errors=tuples(st.text(min_size=1, max_size=9)),
            ranges=ordinal_ranges,
        ),
    ),
    "ReleasedItems": (
        batches.RELEASED,
        built(reports.ReleasedItems, batch=batch, cursor=st.none() | st.text(max_size=9)),
    ),
    "Acks": (
        items.ACKS,
        st.builds(
            acks.Acks,
            items=tuples(st.text(max_size=9)),
            ranges=tuples(
                st.builds(
                    acks.ItemRange,
                    start=st.integers(0, 2**32 - 1),
                    stop=st.none() | st.integers(1, 2**32 - 1),
                )
            ),
            counts=tuples(
                st.builds(acks.Count, batch_id=numbers, n=st.integers(1, 2**32 - 1), totals=values)
            ),
            failures=st.just(()),
            results=tuples(result),
        ),
    ),
    "QueuedAcks": (
        items.QUEUED_ACKS,
        st.builds(
            acks.Acks,
            items=tuples(st.text(max_size=9)),
            ranges=st.just(()),
            counts=st.just(()),
            failures=tuples(failure),
            results=tuples(result),
        ),
    ),
    "FailItems": (items.FAILURES, tuples(failure)),
    "FailedMessage": (
        items.FAILED_MESSAGE,
        st.builds(reports.FailedMessage, failure=failed_item, message=st.none() | kept),
    ),
    "Picture": (
        picture_shapes.PICTURE,
        built(
            picture.Picture,
            batch=batch,
            level=st.integers(0, 6),
            root_level=st.integers(0, 6),
            cells=tuples(
                built(picture.Cell, parts=st.integers(1, 64), word=st.none() | st.integers(0, 2**64 - 1))
            ),
            items=tuples(built(picture.PictureItem, leased_until=maybe_times)),
        ),
    ),
    "FailureErrors": (
        items.ERRORS,
        st.builds(
            reports.Errors,
            errors=tuples(built(reports.ErrorGroup, last_failed_at=maybe_times)),
        ),
    ),
    "Receipts": (
        items.RECEIPTS,
        tuples(built(acks.Receipt, duplicates=tuples(st.text(max_size=9)))),
    ),
    "Missing": (items.MISSING, st.builds(reports.Missing, ranges=tuples(missing_ranges()))),
    "FailedItems": (
        items.FAILED_ITEMS,
        st.builds(reports.Failures, failures=tuples(failed_item)),
    ),
    "Redrive": (
        redrive_shapes.REDRIVE,
        st.builds(
            redrives.Redrive,
            errors=tuples(st.text(min_size=1, max_size=9)),
            ranges=ordinal_ranges,
            queue_url=st.none() | st.text(min_size=1, max_size=9),
        ),
    ),
    "Redrivings": (
        redrive_shapes.REDRIVINGS,
        st.builds(redrives.Redrivings, redrives=tuples(redriving)),
    ),
    "Buffer": (buffers.BUFFER, a_buffer),
    "BufferPage": (buffers.BUFFERS, st.builds(buffer.BufferPage, buffers=tuples(a_buffer))),
    "BufferLevel": (
        buffers.LEVEL,
        built(buffer.Level, buffer=a_buffer),
    ),
    "PutWork": (buffers.PUT_WORK, st.lists(st.text(min_size=1), min_size=1, max_size=10).map(tuple)),
    "AcceptedWork": (buffers.ACCEPTED, st.builds(buffer.Accepted, items=tuples(st.text(max_size=9)))),
    "TakenWork": (buffers.TAKEN, tuples(built(buffer.Work))),
    "FailedWork": (buffers.FAILED_WORK, st.builds(buffer.FailedWork, st.text(max_size=9))),
    "ReleasedSlots": (buffers.RELEASED, built(buffer.Released)),
    "Registration": (directory_shapes.REGISTRATION, registration),
    "RegistrationPage": (
        directory_shapes.REGISTRATIONS,
        st.builds(directory.Registrations, registrations=tuples(registration)),
    ),
    "Deletion": (directory_shapes.DELETED, st.booleans()),
    "Route": (directory_shapes.ROUTE, route),
    "RoutePage": (directory_shapes.ROUTES, st.builds(routing.Routes, routes=tuples(route))),
    "PutEvent": (
        directory_shapes.PUT_EVENT,
        st.builds(
            routing.PutEvent,
            source=st.text(min_size=1, max_size=9),
            detail_type=st.text(min_size=1, max_size=9),
            detail=st.dictionaries(st.text(max_size=3), json, max_size=2),
        ),
    ),
    "EventSent": (directory_shapes.SENT, st.builds(routing.Sent)),
    "OpenFrame": (
        frame_shapes.OPEN_FRAME,
        st.builds(
            frames.OpenFrame,
            size=st.integers(1, 2**32 - 1),
            source=st.text(max_size=9),
            destination=st.text(max_size=9),
            reply_to=st.text(max_size=9),
            ttl=st.integers(60, 31_536_000),
            user_key=st.text(max_size=9),
        ),
    ),
    "Frame": (
        frame_shapes.FRAME,
        built(frames.Frame, about=strings, missing=tuples(st.tuples(numbers, numbers))),
    ),
    "ClaimEnvelopes": (
        frame_shapes.CLAIM_ENVELOPES,
        st.builds(
            frames.ClaimEnvelopes,
            tickets=tuples(ticket),
            lease=st.integers(1, 43_200),
        ),
    ),
    "EnvelopeClaims": (
        frame_shapes.CLAIMS,
        tuples(built(frames.Claim, ticket=ticket)),
    ),
    "Scatter": (
        scatters.SCATTER,
        st.builds(
            scatter.Scatter,
            body=st.text(min_size=1, max_size=9),
            recipients=tuples(
                st.builds(
                    scatter.Recipient, channel=st.text(min_size=1, max_size=9), name=st.text(max_size=9)
                )
            ),
            topic=st.none() | st.text(min_size=1, max_size=9),
            where=strings,
            type=st.text(max_size=9),
            attributes=st.dictionaries(st.text(max_size=3), st.text(min_size=1, max_size=3), max_size=3),
            correlation_id=st.none() | st.text(min_size=1, max_size=9),
            timeout=st.integers(5, 86_400),
            max_retries=st.integers(0, 10),
            quorum=st.none() | st.integers(1, 9) | st.floats(0.1, 0.9),
            user_key=st.text(max_size=9),
            metadata=strings,
        ),
    ),
    "Scattered": (
        scatters.SCATTERED,
        built(
            scatter.Scattered,
            batch=batch.map(lambda row: replace(row, items=20)),
            received=st.integers(0, 10),
            failed=st.integers(0, 10),
        ),
    ),
    "ReplyList": (
        scatters.REPLIES,
        tuples(
            st.builds(scatter.Reply, payload=json, claim=st.none())
            | st.builds(scatter.Reply, payload=st.none(), claim=st.text(min_size=1, max_size=9))
        ),
    ),
    "ReplyReceipts": (scatters.REPLY_RECEIPTS, tuples(built(scatter.ReplyReceipt))),
    "Gathered": (
        scatters.GATHERED,
        st.builds(
            scatter.Gathered,
            replies=tuples(built(scatter.GatheredReply, payload=json, replied_at=times)),
        ),
    ),
    "MissingRecipients": (
        scatters.MISSING_RECIPIENTS,
        st.builds(scatter.MissingRecipients, recipients=tuples(built(scatter.MissingRecipient))),
    ),
    "FailedRecipients": (
        scatters.FAILED_RECIPIENTS,
        st.builds(scatter.FailedRecipients, recipients=tuples(built(scatter.FailedRecipient))),
    ),
    "ClaimCheckRequest": (
        scatters.CLAIM_CHECK_REQUEST,
        st.builds(
            claim_checks.ClaimCheckRequest,
            size=st.integers(1, 2**30),
            content_type=st.text(min_size=1, max_size=9),
        ),
    ),
    "ClaimCheck": (
        scatters.CLAIM_CHECK,
        st.builds(claim_checks.ClaimCheck, headers=strings, expires_at=times),
    ),
}
