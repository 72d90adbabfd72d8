"""A window of messages: each is handled on its own, all are acknowledged in one call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import pytest

from fanin import ItemFailed, ReceivedMessage, Retry
from fanin.client.consuming.acknowledging import Acknowledger, ItemOutcome
from fanin.client.consuming.skipping import Skipping
from fanin.client.consuming.window import MessageWindow
from fanin.client.ended_batches import EndedBatches
from fanin.client.items_in_hand import IN_HAND
from fanin.domain import ids
from fanin.domain.acks import Receipt
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage
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


class Acknowledged:
    """Keeps the outcomes of each call; refuses those items that are in ``refused``."""

    def __init__(self, *refused: str) -> None:
        self.calls: list[list[ItemOutcome]] = []
        self._refused = refused

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        if any(outcome.item in self._refused for outcome in outcomes):
            raise InvalidItemId("forged")
        self.calls.append(list(outcomes))


def message(name: str, item: str | None, **attributes: str) -> ReceivedMessage:
    return ReceivedMessage(name, f"body of {name}", item, attributes, None, 1, {})


def test_all_messages_are_handled_and_acknowledged_in_one_call() -> None:
    # Given
    handled: list[str] = []
    acknowledged = Acknowledged()
    window = MessageWindow(lambda message: handled.append(message.body), acknowledged)

    # When
    window.handle(message("m1", "1:g:0"))
    window.handle(message("m2", "1:g:1"))
    window.handle(message("m3", None))  # of no batch
    assert acknowledged.calls == []
    again = window.acknowledge()

    # Then
    assert handled == ["body of m1", "body of m2", "body of m3"]
    assert acknowledged.calls == [[ItemOutcome("1:g:0"), ItemOutcome("1:g:1")]]
    assert again == set()


def test_another_error_is_raised_and_its_message_not_acknowledged() -> None:
    acknowledged = Acknowledged()
    window = MessageWindow(lambda message: 1 / int(message.item or ""), acknowledged)
    window.handle(message("m1", "1"))
    with pytest.raises(ZeroDivisionError):
        window.handle(message("m2", "0"))
    window.acknowledge()
    assert acknowledged.calls == [[ItemOutcome("1")]]


@pytest.mark.parametrize("waits_for", ["reply", "child"])
def test_an_item_that_waits_for_a_reply_or_a_child_is_not_marked_unless_it_failed(waits_for: str) -> None:
    def handle(message: ReceivedMessage) -> None:
        if waits_for == "child":
            IN_HAND.leave_to_child(message.item or "")
        if message.message_id == "m2":
            raise ItemFailed("the catalog is torn")

    acknowledged = Acknowledged()
    window = MessageWindow(handle, acknowledged)
    attributes = {ATTRIBUTE_REPLY_TO: "https://sqs/replies"} if waits_for == "reply" else {}
    for name, item in (("m1", "1:g:0"), ("m2", "1:g:1")):
        window.handle(message(name, item, **attributes))
    assert window.acknowledge() == set()
    ((outcome,),) = acknowledged.calls
    assert (outcome.item, outcome.failure) == ("1:g:1", "the catalog is torn")


def test_what_is_added_to_an_item_that_is_left_to_a_child_is_logged_since_it_counts_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def handle(message: ReceivedMessage) -> None:
        IN_HAND.leave_to_child(message.item or "")
        if message.message_id == "m1":
            message.add(rows=812)

    window = MessageWindow(handle, Acknowledged())
    window.handle(message("m1", "1:g:0"))
    window.handle(message("m2", "1:g:1"))

    (logged,) = caplog.messages
    assert "item 1:g:0 counts nowhere" in logged
    assert "{'rows': 812}" in logged


def test_messages_of_a_refused_item_come_again_all_of_them() -> None:
    # Given two messages of one forged item, and one of a genuine item
    acknowledged = Acknowledged("1:g:9")
    window = MessageWindow(lambda _: None, acknowledged)
    for name, item in (("m1", "1:g:9"), ("m2", "1:g:0"), ("m3", "1:g:9")):
        window.handle(message(name, item))

    # When, then
    assert window.acknowledge() == {"m1", "m3"}
    assert [outcome.item for call in acknowledged.calls for outcome in call] == ["1:g:0"]


def test_after_an_error_that_blames_no_item_all_messages_with_items_come_again() -> None:
    def throttled(_: Sequence[ItemOutcome]) -> None:
        raise Throttled("slow down")

    window = MessageWindow(lambda _: None, throttled)
    for name, item in (("m1", "1:g:0"), ("m2", None), ("m3", "1:g:1")):
        window.handle(message(name, item))
    assert window.acknowledge() == {"m1", "m3"}


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
def test_a_message_is_dropped_only_if_its_batch_is_gone_for_certain(
    item: str, error: FaninError, dropped: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # Given two messages, of one of which the ledger says something
    marked: list[str] = []

    def acknowledge(outcomes: Sequence[ItemOutcome]) -> None:
        if any(outcome.item == item for outcome in outcomes):
            raise error
        marked.extend(outcome.item for outcome in outcomes)

    window = MessageWindow(lambda _: None, acknowledge, now=lambda: NOW)
    for name, named in (("m1", item), ("m2", "1:g:0")):
        window.handle(message(name, named))
    # When
    again = window.acknowledge()
    # Then the other one is marked, unless the error blames nobody
    assert ("m1" in again) is not dropped
    assert (marked == ["1:g:0"]) is ("m2" not in again)
    assert (f"item {item} was handled, and its message is dropped" in caplog.text) is dropped


class TestRetries:
    """Attempts that fail again are noted, and nothing else is."""

    @staticmethod
    def window(noted: list[Retry], acknowledge: Acknowledger) -> MessageWindow:
        def handle(message: ReceivedMessage) -> None:
            if message.body == "bad":
                raise ValueError("no such customer")

        return MessageWindow(handle, acknowledge, note=noted.extend, source="https://sqs/1/work")

    def test_only_a_repeated_attempt_that_raises_is_noted(self) -> None:
        noted: list[Retry] = []
        window = self.window(noted, lambda _: None)

        for name, body, received in (("a", "good", 5), ("b", "bad", 1), ("c", "bad", 2)):
            one = replace(message(name, f"item {name}"), body=body, receive_count=received)
            with suppress(ValueError):
                window.handle(one)
        assert noted == []
        window.acknowledge()

        assert noted == [Retry("item c", 2, "ValueError: no such customer", "https://sqs/1/work")]

    def test_a_ledger_that_cannot_mark_items_is_not_asked_for_notes(self) -> None:
        def throttled(_outcomes: Sequence[ItemOutcome]) -> None:
            raise Throttled("busy")

        noted: list[Retry] = []
        window = self.window(noted, throttled)

        window.handle(replace(message("a", "7:g:0"), body="good"))
        with suppress(ValueError):
            window.handle(replace(message("c", "7:g:1"), body="bad", receive_count=2))

        assert window.acknowledge() == {"a"}
        assert noted == []


@pytest.mark.parametrize("lasts", [False, True])
def test_an_acknowledgement_within_the_window_that_breaks_loses_no_item(lasts: bool) -> None:
    """What was handled before is deleted only once it is acknowledged, whatever the first call raised."""
    # Given a batch whose last answer is old, so that its first message is acknowledged at once
    now, calls = 0.0, []
    known = EndedBatches(lambda: now)
    known.learn([Receipt(2, "", State.OPEN)])
    now = 5.0

    def acknowledge(outcomes: Sequence[ItemOutcome]) -> None:
        calls.append([outcome.item for outcome in outcomes])
        if lasts or len(calls) == 1:
            raise RuntimeError("an error that nobody knows")

    window = MessageWindow(
        lambda _: None, acknowledge, skipping=Skipping(known, lambda _: pytest.fail("read"))
    )

    # When
    for name, item in (("m1", "1:g:0"), ("m2", "2:g:0"), ("m3", "2:g:1")):
        window.handle(message(name, item))

    # Then all are acknowledged in the end, once more and no oftener, or none counts as acknowledged
    with pytest.raises(RuntimeError) if lasts else nullcontext():
        assert window.acknowledge() == set()
    assert calls == [["1:g:0", "2:g:0"], ["1:g:0", "2:g:0", "2:g:1"]]


def test_what_was_acknowledged_within_the_window_is_not_acknowledged_again() -> None:
    now, acknowledged = 0.0, Acknowledged("2:g:0")
    known = EndedBatches(lambda: now)
    known.learn([Receipt(2, "", State.OPEN)])
    now = 5.0
    window = MessageWindow(
        lambda _: None, acknowledged, skipping=Skipping(known, lambda _: pytest.fail("read"))
    )

    for name, item in (("m1", "1:g:0"), ("m2", "2:g:0"), ("m3", "1:g:1")):
        window.handle(message(name, item))

    assert window.acknowledge() == {"m2"}  # refused by the first call, and still to come again
    assert [outcome.item for call in acknowledged.calls for outcome in call] == ["1:g:0", "1:g:1"]


@pytest.mark.parametrize(
    ("options", "raw", "said"),
    [
        ({"source": "https://sqs/w"}, {}, "https://sqs/w"),  # a consumer that polls knows its queue
        ({}, {"messageId": "m1", "body": "b", "eventSourceARN": "arn:q"}, "arn:q"),  # Lambda says it
        ({}, {}, ""),
    ],
)
def test_a_failure_has_its_message_a_reason_that_can_be_sent_and_where_it_came_from(
    options: dict[str, Any], raw: dict[str, str], said: str
) -> None:
    """Without that, a redrive does not know where to send the message."""

    def handle(_: ReceivedMessage) -> None:
        raise ItemFailed("torn \udcff")

    acknowledged = Acknowledged()
    window = MessageWindow(handle, acknowledged, **options)

    window.handle(replace(message("m1", "1:g:0"), raw=raw))
    window.acknowledge()

    kept = KeptMessage(raw.get("body", "body of m1"))
    assert acknowledged.calls == [[ItemOutcome("1:g:0", "torn ?", kept, attempts=1, source=said)]]
