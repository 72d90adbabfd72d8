"""The data source writer without Spark around it: what it refuses, and what a commit does."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructType

from fanin.domain.batch import State
from fanin.domain.ids import MAX_COUNT
from fanin.errors import BatchClosed, InvalidRequest, SendFailed
from tests.unit.spark.conftest import MemoryStack

sink = pytest.importorskip("fanin.spark.fanout.sink", reason="Spark before 4.0 has no Python data sources")

BODY = StructType().add("body", StringType())


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9))), st.randoms())
def test_gaps_are_what_the_blocks_leave_out(parts, random):
    # Given a batch of blocks, of which some are ours
    ours, others, at = [], set[int](), 0
    for mine, size in parts:
        if mine:
            ours.append((at, at + size))
        else:
            others |= set(range(at, at + size))
        at += size
    random.shuffle(ours)
    # When the rest is asked for
    found = list(sink.gaps(ours, at))
    # Then it is every ordinal that is not ours, once, in as few blocks as there are
    ordinals = [n for start, stop in found for n in range(start, stop)]
    assert ordinals == sorted(others)
    assert all(start < stop for start, stop in found)
    assert len(found) == sum(n - 1 not in others for n in others)


def test_blocks_that_follow_each_other_are_noted_together():
    assert sink.joined([(10, 15), (0, 5), (5, 10), (20, 22)]) == [(0, 15), (20, 22)]
    assert sink.joined([(0, 5), (3, 7), (4, 5)]) == [(0, 7)]
    assert sink.joined([]) == []


def test_a_gap_larger_than_a_group_can_be_is_divided():
    assert list(sink.gaps([(0, 5)], MAX_COUNT + 10)) == [(5, MAX_COUNT + 5), (MAX_COUNT + 5, MAX_COUNT + 10)]


def test_a_gap_is_divided_as_the_calls_need_it():
    assert list(sink.gaps([(2, 3)], 8, most=3)) == [(0, 2), (3, 6), (6, 8)]


def page(*bodies: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"other": [0] * len(bodies), "body": list(bodies)})


def writer(
    stack: MemoryStack, batch: object, *, schema: StructType = BODY, overwrite: bool = False, **options: str
) -> Any:
    """Make the writer as Spark does."""
    source = type("Source", (sink.FaninDataSource,), {"service": stack})
    given_ = {"batch": str(batch), "queue": "https://queue", **options}
    return source({name: value for name, value in given_.items() if value}).writer(schema, overwrite)


def opened(stack: MemoryStack, **options: Any) -> int:
    return stack.tracker().open(**options).batch_id


def keyed(**bodies: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"key": list(bodies), "body": list(bodies.values())})


class TestKeys:
    SCHEMA = StructType().add("body", StringType()).add("key", StringType())

    def test_an_attempt_that_is_repeated_sends_its_items_again_and_they_complete_the_batch(self, stack):
        # Given an attempt that died, one that counts, and one of another task that has one of its rows
        batch = opened(stack)
        made = writer(stack, batch, schema=self.SCHEMA, keys="key")
        made.write(iter([keyed(lost="lost", a="1")]))
        counts = made.write(iter([keyed(a="1", b="2"), keyed(c=None)]))
        other = made.write(iter([keyed(b="2")]))

        made.commit([counts, other])
        # Then each key is an item, what only the first has is done, and the null has failed
        tracker = stack.tracker()
        assert tracker.status(batch).batch.items == 4
        assert stack.sqs.sent == {
            tracker.find_key(batch, key).item: body
            for key, body in {"lost": "lost", "a": "1", "b": "2"}.items()
        }
        assert tracker.find_key(batch, "lost").done
        (failure,) = tracker.iter_failures(batch)
        assert failure.key == "c"
        tracker.ack([tracker.find_key(batch, key).item for key in "ab"])
        assert tracker.status(batch).batch.state is State.COMPLETE

    def test_rows_without_a_key_are_items_that_have_failed(self, stack):
        batch = opened(stack)
        made = writer(stack, batch, schema=self.SCHEMA, keys="key")
        keys = [None, "", "k" * 513, b"\xe9", "k" * 512]
        column = pa.array([key.encode() if isinstance(key, str) else key for key in keys], pa.binary())
        rows = pa.RecordBatch.from_pydict({"key": column, "body": ["x"] * 5})
        made.commit([made.write(iter([rows]))])
        assert [one.reason for one in stack.tracker().iter_failures(batch)] == [sink._NO_KEY] * 4
        assert list(stack.sqs.sent.values()) == ["x"]

    def test_a_key_with_two_messages_fails_the_write(self, stack):
        made = writer(stack, opened(stack), schema=self.SCHEMA, keys="key")
        with pytest.raises(InvalidRequest, match=r"the key 'a' has two messages.*leave out all rows"):
            made.write(iter([keyed(a="1"), keyed(a="2")]))


def test_a_fair_write_names_the_batch_as_the_group_of_its_messages(stack, monkeypatch):
    groups: list[object] = []
    send = stack.sqs.send_message_batch

    def noting(**request: Any) -> Any:
        groups.extend(entry.get("MessageGroupId") for entry in request["Entries"])
        return send(**request)

    monkeypatch.setattr(stack.sqs, "send_message_batch", noting)
    first, second = opened(stack), opened(stack)
    writer(stack, first, fair="true").write(iter([page("a")]))
    writer(stack, second).write(iter([page("b")]))
    assert groups == [str(first), None]


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"batch": ""}, "option batch is missing"),
            ({"queue": ""}, "option queue is missing"),
            ({"batch": "x"}, "batch id 'x'"),
            ({"body": "other"}, r"no text column 'other'.*fanin\.spark\.with_body"),
            ({"schema": StructType().add("body", LongType())}, "no text column 'body'"),
            ({"keys": "other"}, "no text column 'other' of keys"),
            ({"fair": "yes"}, "fair is true or false, not 'yes'"),
            ({"workers": "0"}, "workers must be a whole number of at least 1"),
            ({"overwrite": True}, "mode append"),
        ],
        ids=str,
    )
    def test_options(self, stack, options, message):
        with pytest.raises(InvalidRequest, match=message):
            writer(stack, **{"batch": opened(stack), **options})

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"limit": 5}, "has a limit, and tasks of Spark do not wait"),
            ({"mode": "estimated"}, "is estimated"),
        ],
    )
    def test_batches_that_a_write_cannot_fill(self, stack, options, why):
        with pytest.raises(InvalidRequest, match=f"{why}.*open one for each write"):
            writer(stack, opened(stack, **options))

    @pytest.mark.parametrize("call", ["close", "cancel"])
    def test_batches_that_are_not_open(self, stack, call):
        batch = opened(stack)
        stack.tracker().add(batch, 1)
        getattr(stack.tracker(), call)(batch)
        with pytest.raises(InvalidRequest, match="with 1 items; open one for each write"):
            writer(stack, batch)

    def test_a_batch_of_another_write(self, stack):
        batch = opened(stack)
        first, second = writer(stack, batch), writer(stack, batch)
        first.write(iter([page("a")]))
        for step in (
            lambda: second.write(iter([page("b")])),
            lambda: second.commit([]),
            lambda: second.abort([]),
        ):
            with pytest.raises(InvalidRequest, match="belongs to another write"):
                step()
        assert list(stack.sqs.sent.values()) == ["a"]


class TestWriting:
    def test_an_attempt_adds_and_sends_block_by_block(self, stack, monkeypatch):
        # Given blocks of two
        monkeypatch.setattr(sink, "BLOCK", 2)
        batch = opened(stack)
        sent = writer(stack, batch).write(iter([page("a", "b", "c"), page("d")]))

        assert sent.spans == [(0, 2), (2, 3), (3, 4)]
        assert sorted(stack.sqs.sent.values()) == ["a", "b", "c", "d"]
        assert stack.tracker().status(batch).batch.items == 4

    def test_a_null_is_an_item_that_has_failed_once_the_write_is_committed(self, stack):
        # Given nulls in an attempt that died, and in the one that counts
        batch = opened(stack)
        made = writer(stack, batch)
        made.write(iter([page(None, "lost", None)]))
        counts = made.write(iter([page("a", None, None), page(None, "b")]))
        assert stack.tracker().status(batch, exact=True).batch.failed == 0
        # When it is committed, and the commit is repeated
        made.commit([counts])
        made.commit([counts])
        # Then only the nulls of the attempt that counts have failed, and its messages are waited for
        tracker = stack.tracker()
        failures = list(tracker.iter_failures(batch))
        assert {failure.reason for failure in failures} == {sink._NO_BODY}
        assert len(failures) == 3
        assert [(one.start, one.stop) for one in tracker.iter_missing(batch)] == [(3, 4), (7, 8)]
        assert sorted(stack.sqs.sent.values()) == ["a", "b", "lost"]
        tracker.ack([item for item, body in stack.sqs.sent.items() if body in {"a", "b"}])
        row = tracker.status(batch).batch
        assert (row.state, row.items, row.failed) == (State.COMPLETE, 8, 3)

    @pytest.mark.parametrize("text", ["", "a\x00b", "\uffff", "ü" * 131_000])
    def test_a_message_that_no_queue_takes_fails_its_item_alone(self, stack, text):
        batch = opened(stack)
        made = writer(stack, batch)
        made.commit([made.write(iter([page("a", text, "b")]))])
        assert [failure.reason for failure in stack.tracker().iter_failures(batch)] == [sink._NO_BODY]
        assert [(one.start, one.stop) for one in stack.tracker().iter_missing(batch)] == [(0, 1), (2, 3)]
        assert sorted(stack.sqs.sent.values()) == ["a", "b"]

    def test_an_attempt_adds_nothing_after_the_commit(self, stack):
        # Given an attempt that has sent one page when another is committed in its place
        batch = opened(stack)
        made = writer(stack, batch)
        counts = made.write(iter([page("a", "b")]))

        def pages():
            yield page("a", "b")
            made.commit([counts])
            yield page("a", "b")

        # When it goes on, then it is refused, and the batch waits for the messages of the other alone
        with pytest.raises(BatchClosed):
            made.write(pages())
        found = stack.tracker().status(batch).batch
        assert (found.state, found.items) == (State.CLOSED, 4)
        assert [(one.start, one.stop) for one in stack.tracker().iter_missing(batch)] == [(0, 2)]

    def test_a_message_that_the_queue_refuses_fails_the_write(self, stack):
        stack.sqs.refuses.add("b")
        with pytest.raises(SendFailed, match="refuses the message of item"):
            writer(stack, opened(stack)).write(iter([page("a", "b")]))

    def test_the_commit_leaves_only_the_items_of_attempts_that_count(self, stack):
        # Given two attempts of one task, and one of another
        batch = opened(stack)
        made = writer(stack, batch)
        made.write(iter([page("lost", "lost too")]))
        counts, other = made.write(iter([page("a", "b")])), made.write(iter([page("c")]))

        made.commit([counts, None, other])

        tracker = stack.tracker()
        assert [(one.start, one.stop) for one in tracker.iter_missing(batch)] == [(2, 5)]
        assert tracker.status(batch).batch.state is State.CLOSED

    def test_the_commit_marks_the_other_items_of_a_batch_with_totals_in_calls_that_are_small_enough(
        self, stack, monkeypatch
    ):
        # Given an attempt that died after more items than a call may mark one by one, and one that counts
        batch = opened(stack, totals=["rows"])
        made = writer(stack, batch)
        made.write(iter([page("lost")]))
        stack.tracker().add(batch, 10_500)
        counts = made.write(iter([page("a", "b")]))
        stack.tracker().add(batch, 1)

        made.commit([counts])
        # Then only its items are left, and what they bring is the total
        tracker = stack.tracker()
        assert [(one.start, one.stop) for one in tracker.iter_missing(batch)] == [(10_501, 10_503)]
        (item,) = [item for item, body in stack.sqs.sent.items() if body == "a"]
        tracker.ack(item, totals={"rows": 5})
        (item,) = [item for item, body in stack.sqs.sent.items() if body == "b"]
        tracker.ack(item, totals={"rows": 7})
        row = tracker.status(batch).batch
        assert (row.state, row.totals, row.totals_exact) == (State.COMPLETE, {"rows": 12}, True)

    def test_an_empty_write_completes_its_batch(self, stack):
        batch = opened(stack)
        writer(stack, batch).commit([None, None])
        assert stack.tracker().status(batch).batch.state is State.COMPLETE

    def test_a_batch_that_somebody_cancelled_fails_the_commit(self, stack):
        batch = opened(stack)
        made = writer(stack, batch)
        stack.tracker().cancel(batch)
        with pytest.raises(BatchClosed, match="cancelled while it was written to"):
            made.commit([])

    def test_a_write_that_fails_cancels_its_batch(self, stack):
        batch = opened(stack)
        writer(stack, batch).abort([])
        assert stack.tracker().status(batch).batch.state is State.CANCELLED
