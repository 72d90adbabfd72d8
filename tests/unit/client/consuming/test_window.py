"""A window of messages: each is handled on its own, all are acknowledged in one call."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fanin import ItemFailed, ReceivedMessage
from fanin.client.consuming.acknowledging import Acknowledger
from fanin.client.consuming.window import MessageHandler, MessageWindow
from fanin.client.ended_batches import EndedBatches, Skipping
from fanin.client.items_in_hand import IN_HAND
from fanin.domain import ids
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.marks import Done, Failure, Mark, Marked, Receipt
from fanin.entry.kept_messages import kept_message
from fanin.errors import (
    AccessDenied,
    BatchGone,
    BatchNotFound,
    FaninError,
    InvalidItemId,
    ServiceUnavailable,
    Throttled,
)
from fanin.names import ATTRIBUTE_REPLY_TO
from fanin.types import Retry


class Acknowledged:
    """Keeps the marks of each call; some items are not settled, with an error."""

    def __init__(self, error: FaninError | None = None, *items: str) -> None:
        self.calls: list[list[Mark]] = []
        self._error = error
        self._items = items

    def __call__(self, marks: Sequence[Mark]) -> Mapping[int, FaninError]:
        self.calls.append(list(marks))
        if self._error is None:
            return {}
        bad = [place for place, mark in enumerate(marks) if getattr(mark, "item", mark) in self._items]
        return dict.fromkeys(bad, self._error)


def message(
    name: str, item: str | None = None, group: str | None = None, **attributes: str
) -> ReceivedMessage:
    return ReceivedMessage(name, f"body of {name}", item, attributes, group, 1, {})


def raw_of(one: ReceivedMessage) -> dict[str, Any]:
    """The message as Lambda delivers it."""
    texts = {**one.attributes, **({"fanin-item": one.item} if one.item else {})}
    return {
        "messageId": one.message_id,
        "body": one.body,
        "attributes": {
            "ApproximateReceiveCount": str(one.receive_count),
            **({"MessageGroupId": one.group_id} if one.group_id else {}),
        },
        "messageAttributes": {name: {"stringValue": text} for name, text in texts.items()},
        **one.raw,
    }


def run(
    messages: Sequence[ReceivedMessage],
    acknowledge: Acknowledger,
    handle: MessageHandler = lambda _: None,
    **options: Any,
) -> set[int]:
    """Handle a window; returns the places of the messages that come again."""
    return MessageWindow(handle, acknowledge, **options).run(list(map(raw_of, messages)))


def test_all_messages_are_handled_and_acknowledged_in_one_call():
    handled: list[str] = []
    acknowledged = Acknowledged()

    def handle(message: ReceivedMessage) -> None:
        assert acknowledged.calls == []
        handled.append(message.body)

    window = [message("m1", "1:g:0"), message("m2", "1:g:1"), message("m3")]  # the third is of no batch
    assert run(window, acknowledged, handle) == set()
    assert handled == ["body of m1", "body of m2", "body of m3"]
    assert acknowledged.calls == [["1:g:0", "1:g:1"]]


def test_a_message_whose_handler_raises_comes_again_and_is_not_acknowledged(caplog):
    acknowledged = Acknowledged()
    window = [message(f"m{n}", str(n)) for n in (1, 0, 2)]
    assert run(window, acknowledged, lambda one: 1 / int(one.item or "")) == {1}
    assert acknowledged.calls == [["1", "2"]]
    assert "message m0 failed and comes again after the queue's visibility timeout" in caplog.messages


@pytest.mark.parametrize("waits_for", ["reply", "child"])
def test_an_item_that_waits_for_a_reply_or_a_child_is_not_marked_unless_it_failed(waits_for):
    def handle(message: ReceivedMessage) -> None:
        if waits_for == "child":
            IN_HAND.leave_to_child(message.item or "")
        if message.message_id == "m2":
            raise ItemFailed("the catalog is torn")

    acknowledged = Acknowledged()
    attributes = {ATTRIBUTE_REPLY_TO: "https://sqs/replies"} if waits_for == "reply" else {}
    window = [message(name, item, **attributes) for name, item in (("m1", "1:g:0"), ("m2", "1:g:1"))]
    assert run(window, acknowledged, handle) == set()
    kept = {name: MessageAttribute("String", text) for name, text in attributes.items()}
    assert acknowledged.calls == [
        [Failure("1:g:1", "the catalog is torn", KeptMessage("body of m2", kept), attempts=1)]
    ]


def test_what_is_added_to_an_item_that_is_left_to_a_child_is_logged_since_it_counts_nowhere(caplog):
    def handle(message: ReceivedMessage) -> None:
        IN_HAND.leave_to_child(message.item or "")
        if message.message_id == "m1":
            message.add(rows=812)

    run([message("m1", "1:g:0"), message("m2", "1:g:1")], Acknowledged(), handle)

    (logged,) = caplog.messages
    assert "item 1:g:0 counts nowhere" in logged
    assert "{'rows': 812}" in logged


def test_each_delivery_of_a_message_has_a_mark_of_its_own_in_their_order():
    """So the ledger lets the first decide, whatever the second brings."""
    seen: set[str] = set()

    def handle(message: ReceivedMessage) -> None:
        if message.body in seen:
            raise ItemFailed("was imported before")
        seen.add(message.body)
        message.add(rows=5)

    acknowledged = Acknowledged()
    twice = [message("m1", "1:g:0"), message("m1", "1:g:0")]
    assert run(twice, acknowledged, handle) == set()
    assert acknowledged.calls == [
        [
            Done("1:g:0", {"rows": 5}),
            Failure("1:g:0", "was imported before", KeptMessage("body of m1"), attempts=1),
        ]
    ]


def test_only_the_delivery_of_a_mark_that_is_not_settled_comes_again(caplog):
    acknowledged = Acknowledged(InvalidItemId("forged"), "1:g:9")
    window = [message(f"m{n}", item) for n, item in enumerate(("1:g:0", "1:g:9", None, "1:g:1"))]
    assert run(window, acknowledged) == {1}
    assert len(acknowledged.calls) == 1
    assert "item '1:g:9' was refused (invalid-item-id), its message comes again: forged" in caplog.messages


def test_what_a_busy_ledger_leaves_comes_again_and_is_logged_in_one_line(caplog):
    window = [message(f"m{n}", item) for n, item in enumerate(("1:g:0", None, "1:g:1"))]
    assert run(window, Acknowledged(Throttled("slow down"), "1:g:0", "1:g:1")) == {0, 2}
    assert caplog.messages == ["2 items could not be acknowledged and come again: slow down"]


class TestFifo:
    WINDOW = tuple(
        message(name, f"1:g:{n}", name[0]) for n, name in enumerate(("a1", "b1", "a2", "b2", "a3"))
    )

    @pytest.mark.parametrize("error", [InvalidItemId("forged"), Throttled("slow down")])
    def test_nothing_of_a_group_is_deleted_behind_a_mark_that_is_not_settled(self, error):
        assert run(self.WINDOW, Acknowledged(error, "1:g:0"), fifo=True) == {0, 2, 4}
        assert run(self.WINDOW, Acknowledged(error, "1:g:2"), fifo=True) == {2, 4}
        assert run(self.WINDOW, Acknowledged(error, "1:g:0")) == {0}

    def test_nothing_of_a_group_is_handled_behind_one_that_failed(self):
        handled: list[str] = []

        def handle(message: ReceivedMessage) -> None:
            handled.append(message.message_id)
            if message.message_id == "a1":
                raise ValueError

        acknowledged = Acknowledged()
        assert run(self.WINDOW, acknowledged, handle, fifo=True) == {0, 2, 4}
        assert handled == ["a1", "b1", "b2"]
        assert acknowledged.calls == [["1:g:1", "1:g:3"]]

    def test_nothing_is_handled_behind_a_message_that_cannot_be_read(self):
        """Its group is not known."""
        raw: list[dict[str, Any]] = [raw_of(self.WINDOW[0]), {}, raw_of(self.WINDOW[1])]
        acknowledged = Acknowledged()
        window = MessageWindow(lambda _: None, acknowledged, fifo=True)
        assert window.run(raw) == {1, 2}
        assert acknowledged.calls == [["1:g:0"]]


NOW = 1_790_000_000_000


def item_of(opened_at: int) -> str:
    block = ids.issue(ids.batch_id(opened_at, 0), 0, 2, bytes(ids.SALT_BYTES))
    return f"{block.prefix}:0"


DAY = 24 * 60 * 60 * 1_000
OLD, YOUNG = item_of(NOW - DAY - 1), item_of(NOW - DAY)


@pytest.mark.parametrize(
    ("item", "error", "dropped"),
    [
        (OLD, BatchGone("removed"), True),
        (YOUNG, BatchGone("removed"), True),
        (OLD, BatchNotFound("unknown"), True),
        (YOUNG, BatchNotFound("unknown"), False),
        ("nonsense", BatchNotFound("unknown"), False),
        (OLD, InvalidItemId("forged"), False),
        (OLD, ServiceUnavailable("no answer"), False),
        (OLD, Throttled("slow down"), False),
        (OLD, AccessDenied("not you"), False),
    ],
)
def test_a_message_is_dropped_only_if_its_batch_is_gone_for_certain(item, error, dropped, caplog):
    window = [message("m1", item), message("m2", "1:g:0")]
    assert run(window, Acknowledged(error, item), now=lambda: NOW) == (set() if dropped else {0})
    assert (f"item {item} was handled, and its message is dropped" in caplog.text) is dropped


class TestRetries:
    """Attempts that fail again are noted, and nothing else is."""

    @staticmethod
    def handle(message: ReceivedMessage) -> None:
        if message.body == "bad":
            raise ValueError("no such customer")

    @pytest.mark.parametrize("busy", [False, True])
    def test_only_a_repeated_attempt_that_raises_is_noted_unless_the_ledger_is_busy(self, busy):
        noted: list[Retry] = []
        window = [
            replace(message(name, f"item {name}"), body=body, receive_count=received)
            for name, body, received in (("a", "good", 5), ("b", "bad", 1), ("c", "bad", 2))
        ]
        acknowledge = Acknowledged(Throttled("busy") if busy else None, "item a")

        again = run(window, acknowledge, self.handle, note=noted.extend, source="https://sqs/1/work")

        assert again == ({0, 1, 2} if busy else {1, 2})
        retry = Retry("item c", 2, "ValueError: no such customer", "https://sqs/1/work")
        assert noted == ([] if busy else [retry])

    def test_a_refused_mark_beside_it_does_not_matter(self):
        noted: list[Retry] = []
        window = [message("a", "item a"), replace(message("c", "item c"), body="bad", receive_count=2)]

        again = run(window, Acknowledged(InvalidItemId("no id"), "item a"), self.handle, note=noted.extend)

        assert (again, [retry.item for retry in noted]) == ({0, 1}, ["item c"])


class TestWithinTheWindow:
    """The first message of a batch whose last answer is old is acknowledged at once."""

    @pytest.fixture
    def skipping(self) -> Skipping:
        moments = iter([0.0])
        known = EndedBatches(lambda: next(moments, 5.0))
        known.learn([], Marked([Receipt(2, "", State.OPEN)]))
        return Skipping(known, lambda _: pytest.fail("read"))

    def test_what_was_acknowledged_is_not_acknowledged_again(self, skipping):
        acknowledged = Acknowledged(InvalidItemId("forged"), "2:g:0")
        window = [message("m1", "1:g:0"), message("m2", "2:g:0"), message("m3", "1:g:1")]
        assert run(window, acknowledged, skipping=skipping) == {1}
        assert acknowledged.calls == [["1:g:0", "2:g:0"], ["1:g:1"]]

    def test_on_fifo_nothing_is_handled_behind_what_is_not_settled(self, skipping):
        handled: list[str] = []
        window = [message(name, item, name[0]) for name, item in (("a1", "2:g:0"), ("a2", "2:g:1"))]
        acknowledged = Acknowledged(Throttled("busy"), "2:g:0")
        handle: MessageHandler = lambda one: handled.append(one.message_id)  # noqa: E731
        assert run(window, acknowledged, handle, skipping=skipping, fifo=True) == {0, 1}
        assert handled == ["a1"]

    def test_an_error_that_nobody_knows_deletes_nothing(self, skipping):
        def broken(_: Sequence[Mark]) -> Mapping[int, FaninError]:
            raise RuntimeError

        with pytest.raises(RuntimeError):
            run([message("m1", "2:g:0"), message("m2", "2:g:1")], broken, skipping=skipping)


@pytest.mark.parametrize(
    ("options", "raw", "said"),
    [
        ({"source": "https://sqs/w"}, {}, "https://sqs/w"),  # a consumer that polls knows its queue
        ({}, {"messageId": "m1", "body": "b", "eventSourceARN": "arn:q"}, "arn:q"),  # Lambda says it
        ({}, {}, ""),
    ],
)
def test_a_failure_has_its_message_a_reason_that_can_be_sent_and_where_it_came_from(options, raw, said):
    """Without that, a redrive does not know where to send the message."""

    def handle(_: ReceivedMessage) -> None:
        raise ItemFailed("torn \udcff")

    acknowledged = Acknowledged()
    run([replace(message("m1", "1:g:0"), raw=raw)], acknowledged, handle, **options)

    kept = KeptMessage(raw.get("body", "body of m1"))
    assert acknowledged.calls == [[Failure("1:g:0", "torn ?", kept, attempts=1, source=said)]]


def test_of_a_message_that_was_polled_all_but_the_item_is_kept():
    assert kept_message(
        {
            "MessageId": "m",
            "Body": "body",
            "Attributes": {"MessageGroupId": "g"},
            "MessageAttributes": {
                "fanin-item": {"StringValue": "1:g:0", "DataType": "String"},
                "kind": {"StringValue": "a", "DataType": "String"},
                "cents": {"StringValue": "7", "DataType": "Number.cents"},
                "blob": {"BinaryValue": b"\x00\xff", "DataType": "Binary"},
            },
        }
    ) == KeptMessage(
        "body",
        {
            "kind": MessageAttribute("String", "a"),
            "cents": MessageAttribute("Number.cents", "7"),
            "blob": MessageAttribute("Binary", b"\x00\xff"),
        },
        "g",
    )
