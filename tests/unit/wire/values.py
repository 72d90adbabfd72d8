"""Values of every shape, for tests of what is written and read."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from fanin.domain import batch as b
from fanin.domain import (
    buffer,
    claim_checks,
    diagnosis,
    directory,
    failures,
    frames,
    marks,
    picture,
    redrives,
    reports,
    routing,
    scatter,
    targets,
)
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.ids import Group, issue
from fanin.domain.keys import AddKeys, ItemKey, KeyedItem, KeyedItems
from fanin.wire import batches, buffers, items, scatters
from fanin.wire import directory as directory_shapes
from fanin.wire import frames as frame_shapes
from fanin.wire import marks as mark_shapes
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
    failures.Tolerance,
    count=st.none() | numbers,
    percent=st.none() | st.floats(0, 100),
    min_sample=st.none() | st.integers(1, 2**40),
)
some_text = st.text(max_size=9)
a_name = st.text(min_size=1, max_size=9)
COMMON = {
    "bool": st.booleans(),
    "int": numbers,
    "int | None": st.none() | numbers,
    "str": some_text,
    "str | None": st.none() | some_text,
    "Mapping[str, str]": strings,
}
TIMES = {"int": times, "int | None": maybe_times}


def tuples(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


def built(kind: type[Any], **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of a class, with all its attributes: numbers from 0 on, and times where their names say so."""
    for one in fields(kind):
        types = TIMES if one.name.endswith("_at") or one.name in ("since", "until") else COMMON
        if one.name not in given and one.type in types:
            given[one.name] = types[one.type]
    return st.builds(kind, **given)


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
    child_failures=st.sampled_from(b.ChildFailures),
    tolerated_failures=st.none() | a_tolerance,
    cause=st.none() | st.sampled_from(b.Cause),
    held=numbers,
    totals=sums,
    totals_before=sums,
).map(lambda row: replace(row, touched_at=row.active_at, held_more=row.may_hold_more))
kept = built(
    KeptMessage,
    attributes=st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.builds(MessageAttribute, st.just("String"), st.text(max_size=5))
        | st.builds(MessageAttribute, st.just("Binary"), st.binary(max_size=5)),
        max_size=3,
    ),
    group_id=st.none() | st.text(min_size=1, max_size=5),
)
a_result = st.integers() | st.text(max_size=5) | st.lists(st.booleans(), max_size=2)
mark = st.one_of(
    some_text,
    built(marks.Done, totals=values, result=st.none() | a_result),
    built(marks.Failure, message=st.none() | kept, attempts=st.integers(0, 9), totals=values),
    built(marks.ItemRange, start=st.integers(0, 2**32 - 1), stop=st.none() | st.integers(1, 2**32 - 1)),
    built(marks.Count, batch_id=st.integers(0, 2**53 - 1), n=st.integers(1, 2**32 - 1), totals=values),
)
item_result = built(reports.ItemResult, result=a_result)
failed_item = built(reports.FailedItem, redriven=st.none() | st.text(max_size=5))
a_buffer = built(buffer.Buffer, limit=st.integers(1, 1_000_000))
route = built(routing.Route, pattern=st.dictionaries(st.text(max_size=3), json, max_size=2))


ordinal_ranges = tuples(
    built(redrives.OrdinalRange, start=st.integers(0, 2**40 - 1), stop=st.integers(1, 2**40))
)
redriving = built(
    redrives.Redriving,
    not_kept_items=tuples(numbers),
    refused=st.dictionaries(some_text, numbers, max_size=3),
    errors=tuples(a_name),
    ranges=ordinal_ranges,
    queue_url=st.none() | a_name,
)


ticket = built(frames.Ticket, index=st.integers(0, 2**32 - 1))


@st.composite
def missing_ranges(draw: st.DrawFn) -> reports.MissingRange:
    start, size = draw(st.integers(0, 2**40 - 100)), draw(st.integers(1, 99))
    return reports.MissingRange(start, start + size, issue(7, start, size, b"salt-of-a-batch!").prefix)


troubled = built(reports.Troubled, batch=batch)

CASES: dict[str, tuple[Shape[Any], st.SearchStrategy[Any]]] = {
    "ChangeLimits": (
        batches.CHANGE_LIMITS,
        st.builds(
            b.ChangeLimits,
            deadline=maybe_times,
            tolerated_failures=st.none() | a_tolerance,
            stall_after=st.none() | st.integers(0, 31_536_000),
        ),
    ),
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
            child_failures=st.sampled_from(b.ChildFailures),
            tolerated_failures=st.none() | a_tolerance,
            kind=st.just(b.Kind.BATCH),
            size=st.none(),
            totals=sums.map(tuple),
        ),
    ),
    "Batch": (batches.BATCH, batch),
    "BatchPage": (batches.BATCHES, built(reports.Batches, batches=tuples(batch))),
    "BatchCounts": (
        batches.BATCH_COUNTS,
        built(reports.BatchCounts, states=st.just({"open": 3}), at_least=st.just(("open",))),
    ),
    "Troubled": (batches.TROUBLED, troubled),
    "Attention": (
        batches.ATTENTION,
        built(reports.Attention, batches=tuples(troubled), counts=st.just({"held": 3})),
    ),
    "Progress": (
        batches.PROGRESS,
        built(
            reports.Progress,
            batch=batch,
            cost=st.none()
            | built(
                reports.Estimate,
                dollars=dollars,
                at_least=dollars,
                at_most=dollars,
                since=some_text,
                estimate=st.just(True),
            ),
        ),
    ),
    "Group": (batches.GROUP, built(Group, id=st.uuids().map(str), upto=st.integers(1, 2**32 - 1))),
    "ItemKey": (batches.ITEM_KEY, built(ItemKey, key=a_name)),
    "AddKeys": (batches.ADD_KEYS, built(AddKeys, keys=tuples(built(ItemKey, key=a_name)))),
    "KeyedItem": (batches.KEYED_ITEM, built(KeyedItem)),
    "KeyedItems": (batches.KEYED_ITEMS, built(KeyedItems, items=tuples(built(KeyedItem)))),
    "Expired": (batches.EXPIRED, built(reports.Expired)),
    "Verdict": (
        batches.VERDICT,
        built(reports.Verdict, batch=batch, disagreements=tuples(st.text(max_size=5))),
    ),
    "Tolerance": (batches.TOLERANCE, a_tolerance),
    "Selection": (
        redrive_shapes.SELECTION,
        built(redrives.Selection, errors=tuples(a_name), ranges=ordinal_ranges),
    ),
    "ReleasedItems": (batches.RELEASED, built(reports.ReleasedItems, batch=batch)),
    "MarkItems": (mark_shapes.MARKS, tuples(mark)),
    "Marked": (
        mark_shapes.MARKED,
        built(
            marks.Marked,
            receipts=tuples(built(marks.Receipt, duplicates=tuples(some_text))),
            refused=st.just({}),  # errors are not equal to one another; see test_marks
            left=st.just({}),
            unknown=st.just({}),
        ),
    ),
    "FailedMessage": (
        items.FAILED_MESSAGE,
        built(reports.FailedMessage, failure=failed_item, message=st.none() | kept),
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
    "FailureErrors": (items.ERRORS, built(reports.Errors, errors=tuples(built(reports.ErrorGroup)))),
    "Missing": (items.MISSING, built(reports.Missing, ranges=tuples(missing_ranges()))),
    "ResultPage": (items.RESULTS, built(reports.Results, results=tuples(item_result))),
    "FailedItems": (items.FAILED_ITEMS, built(reports.Failures, failures=tuples(failed_item))),
    "TargetReports": (
        batches.TARGET_REPORTS,
        built(
            targets.TargetReports,
            targets=tuples(
                built(
                    targets.TargetReport,
                    type=st.sampled_from(targets.TargetType),
                    when=st.sampled_from(targets.When),
                    state=st.sampled_from(targets.TargetState),
                )
            ),
        ),
    ),
    "Diagnosis": (
        items.DIAGNOSIS,
        built(
            diagnosis.Diagnosis,
            batch=batch,
            findings=tuples(
                built(
                    diagnosis.Finding,
                    code=st.sampled_from(diagnosis.Code),
                    severity=st.sampled_from(diagnosis.Severity),
                    evidence=st.dictionaries(st.text(max_size=3), json, max_size=2),
                )
            ),
            missing=tuples(
                built(
                    diagnosis.MissingKnown,
                    range=missing_ranges(),
                    known=st.sampled_from(diagnosis.Known),
                )
            ),
        ),
    ),
    "SentItems": (
        items.SENT,
        built(diagnosis.SentItems, queue=a_name, start=st.integers(0, 2**40), stop=st.integers(1, 2**40)),
    ),
    "NoteRetries": (
        items.RETRIES,
        tuples(built(diagnosis.Retry, attempt=st.integers(1, 1000))),
    ),
    "Redrive": (
        redrive_shapes.REDRIVE,
        built(redrives.Redrive, errors=tuples(a_name), ranges=ordinal_ranges, queue_url=st.none() | a_name),
    ),
    "Redrivings": (redrive_shapes.REDRIVINGS, built(redrives.Redrivings, redrives=tuples(redriving))),
    "Buffer": (buffers.BUFFER, a_buffer),
    "BufferPage": (buffers.BUFFERS, built(buffer.BufferPage, buffers=tuples(a_buffer))),
    "BufferLevel": (buffers.LEVEL, built(buffer.Level, buffer=a_buffer)),
    "PutWork": (buffers.PUT_WORK, st.lists(st.text(min_size=1), min_size=1, max_size=10).map(tuple)),
    "AcceptedWork": (buffers.ACCEPTED, built(buffer.Accepted, items=tuples(some_text))),
    "TakenWork": (buffers.TAKEN, tuples(built(buffer.Work))),
    "FailedWork": (buffers.FAILED_WORK, built(buffer.FailedWork)),
    "ReleasedSlots": (buffers.RELEASED, built(buffer.Released)),
    "Registration": (directory_shapes.REGISTRATION, built(directory.Registration)),
    "RegistrationPage": (
        directory_shapes.REGISTRATIONS,
        built(directory.Registrations, registrations=tuples(built(directory.Registration))),
    ),
    "Deletion": (directory_shapes.DELETED, st.booleans()),
    "Route": (directory_shapes.ROUTE, route),
    "RoutePage": (directory_shapes.ROUTES, built(routing.Routes, routes=tuples(route))),
    "PutEvent": (
        directory_shapes.PUT_EVENT,
        built(
            routing.PutEvent,
            source=a_name,
            detail_type=a_name,
            detail=st.dictionaries(st.text(max_size=3), json, max_size=2),
        ),
    ),
    "EventSent": (directory_shapes.SENT, built(routing.Sent)),
    "OpenFrame": (
        frame_shapes.OPEN_FRAME,
        built(frames.OpenFrame, size=st.integers(1, 2**32 - 1), ttl=st.integers(60, 31_536_000)),
    ),
    "Frame": (frame_shapes.FRAME, built(frames.Frame, missing=tuples(st.tuples(numbers, numbers)))),
    "ClaimEnvelopes": (
        frame_shapes.CLAIM_ENVELOPES,
        built(frames.ClaimEnvelopes, tickets=tuples(ticket), lease=st.integers(1, 43_200)),
    ),
    "EnvelopeClaims": (frame_shapes.CLAIMS, tuples(built(frames.Claim, ticket=ticket))),
    "Scatter": (
        scatters.SCATTER,
        built(
            scatter.Scatter,
            body=a_name,
            recipients=tuples(built(scatter.Recipient, channel=a_name)),
            topic=st.none() | a_name,
            attributes=st.dictionaries(st.text(max_size=3), st.text(min_size=1, max_size=3), max_size=3),
            correlation_id=st.none() | a_name,
            timeout=st.integers(5, 86_400),
            max_retries=st.integers(0, 10),
            quorum=st.none() | st.integers(1, 9) | st.floats(0.1, 0.9),
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
            built(scatter.Reply, payload=json, claim=st.none())
            | built(scatter.Reply, payload=st.none(), claim=a_name)
        ),
    ),
    "ReplyReceipts": (scatters.REPLY_RECEIPTS, tuples(built(scatter.ReplyReceipt))),
    "Gathered": (
        scatters.GATHERED,
        built(scatter.Gathered, replies=tuples(built(scatter.GatheredReply, payload=json))),
    ),
    "MissingRecipients": (
        scatters.MISSING_RECIPIENTS,
        built(scatter.MissingRecipients, recipients=tuples(built(scatter.MissingRecipient))),
    ),
    "FailedRecipients": (
        scatters.FAILED_RECIPIENTS,
        built(scatter.FailedRecipients, recipients=tuples(built(scatter.FailedRecipient))),
    ),
    "ClaimCheckRequest": (
        scatters.CLAIM_CHECK_REQUEST,
        built(claim_checks.ClaimCheckRequest, size=st.integers(1, 2**30), content_type=a_name),
    ),
    "ClaimCheck": (scatters.CLAIM_CHECK, built(claim_checks.ClaimCheck)),
}
