"""Receiving from a long queue of the emulator."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fanin.local import launcher, tuned_queues


class Emulator:
    """The functions of the emulator that are patched; counts the messages that they look at."""

    def __init__(self) -> None:
        self._HANDLERS: dict[str, Any] = {}
        self._queues_lock = threading.Lock()
        self.queues: dict[str, Any] = {}
        self.looked_at = 0
        self.looks_for_expired = 0
        self.sweeps = 0

    def _ensure_msg_fields(self, message: dict[str, Any]) -> None:
        message.setdefault("visible_at", 0.0)
        message.setdefault("receive_count", 0)

    def _collect_msgs(self, queue: dict[str, Any], most: int, timeout: int) -> list[dict[str, Any]]:
        for message in queue["messages"]:
            self.looked_at += 1
            self._ensure_msg_fields(message)
        now = time.time()
        taken = [message for message in queue["messages"] if message["visible_at"] <= now][:most]
        for message in taken:
            message["visible_at"] = now + timeout
            message["receive_count"] += 1
        return taken

    def _act_delete_message(self) -> None: ...

    def _act_delete_message_batch(self) -> None: ...

    def _delete_messages_for_esm(self) -> None: ...

    def _get_q(self, url: str, action: str | None = None) -> dict[str, Any]:
        return self.queues[url]

    def _expire_retained(self, queue: dict[str, Any]) -> None:
        self.looks_for_expired += 1

    def _dlq_sweep(self, queue: dict[str, Any]) -> None:
        self.sweeps += 1


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    sqs = Emulator()
    monkeypatch.setattr(launcher.importlib, "import_module", lambda name: sqs)
    tuned_queues.tune(launcher._module)
    return sqs


def queue_of(count: int, *, fifo: bool = False) -> dict[str, Any]:
    return {"is_fifo": fifo, "messages": [{"body": n} for n in range(count)]}


def receive(sqs: Any, queue: dict[str, Any], most: int = 10) -> list[int]:
    return [message["body"] for message in sqs._collect_msgs(queue, most, 30)]


def test_messages_come_in_their_order_and_once(sqs):
    queue = queue_of(25)
    queue["messages"][1]["visible_at"] = time.time() + 60
    assert receive(sqs, queue) == [0, *range(2, 11)]
    assert receive(sqs, queue) == [*range(11, 21)]
    assert receive(sqs, queue) == [*range(21, 25)]
    assert receive(sqs, queue) == []
    assert len(queue["messages"]) == 25
    assert [message.get("receive_count", 0) for message in queue["messages"]] == [1, 0, *[1] * 23]
    assert queue["messages"][0].keys() == {"body", "visible_at", "receive_count"}


def test_the_emulator_looks_at_what_it_hands_out_only(sqs):
    receive(sqs, queue_of(1_000))
    assert sqs.looked_at == 10


def test_a_fifo_queue_is_left_to_the_emulator(sqs):
    receive(sqs, queue_of(1_000, fifo=True))
    assert sqs.looked_at == 1_000


def test_expired_messages_are_looked_for_once_a_second_in_each_queue(sqs, monkeypatch):
    now = 100.0
    monkeypatch.setattr(tuned_queues, "time", SimpleNamespace(time=lambda: now))
    one, other = queue_of(1), queue_of(1)
    for queue in (one, one, other):
        sqs._expire_retained(queue)
    assert sqs.looks_for_expired == 2
    now += 1
    sqs._expire_retained(one)
    assert sqs.looks_for_expired == 3


def test_a_message_is_found_by_its_handle_and_the_others_stay_in_their_order():
    messages = [{"body": n, "receipt_handle": f"r{n}" if n % 2 else None} for n in range(9)]
    places = tuned_queues._places(messages, {"r1", "r5", "r7", "gone", None, ""})
    assert places == [1, 5, 7]
    tuned_queues._remove(messages, places)
    assert [message["body"] for message in messages] == [0, 2, 3, 4, 6, 8]
    tuned_queues._remove(messages, [])
    assert len(messages) == 6
    tuned_queues._remove(messages, [0, 5])
    assert [message["body"] for message in messages] == [2, 3, 4, 6]


def test_a_message_sent_while_a_mapping_deletes_is_kept(sqs):
    # Given a sender that has the list of messages in hand
    sqs.queues["q"] = {"messages": [{"body": n, "receipt_handle": f"r{n}"} for n in range(4)]}
    in_hand = sqs.queues["q"]["messages"]
    # When a mapping deletes what its function handled, and then the sender appends
    sqs._delete_messages_for_esm("q", {"r0", "r2", "gone"})
    in_hand.append({"body": 4, "receipt_handle": None})
    # Then the queue has the new message, and what was not deleted
    assert [message["body"] for message in sqs.queues["q"]["messages"]] == [1, 3, 4]


def test_what_is_sent_while_a_queue_is_swept_is_kept_and_what_is_deleted_stays_away(sqs):
    # Given a queue of which one message goes to the dead letters
    queue = {"messages": [{"body": n, "receipt_handle": f"r{n}"} for n in range(4)]}
    sqs.queues["q"] = queue
    mapping = threading.Thread(target=sqs._delete_messages_for_esm, args=("q", {"r1"}))

    def rebuild(shown: dict[str, Any]) -> None:
        # When somebody sends, and a mapping deletes, while the emulator makes its new list
        queue["messages"].append({"body": 4, "receipt_handle": None})
        mapping.start()
        mapping.join(0.2)
        shown["messages"] = [message for message in shown["messages"] if message["body"] != 2]

    tuned_queues._in_place(rebuild, queue)
    mapping.join()
    # Then each has its effect
    assert [message["body"] for message in queue["messages"]] == [0, 3, 4]


def test_it_stops_at_the_last_message_that_is_to_be_deleted():
    messages = [{"receipt_handle": "a"}, {"receipt_handle": "b"}, None]  # None fails whoever looks at it
    assert tuned_queues._places(messages, {"a", "b"}) == [0, 1]


def test_an_emulator_without_what_is_patched_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(launcher.importlib, "import_module", lambda name: SimpleNamespace())
    with pytest.raises(SystemExit, match="lacks the attribute _collect_msgs"):
        tuned_queues.tune(launcher._module)


def test_a_long_queue_is_not_swept_for_every_receive(sqs):
    # Given a queue with a dead-letter queue, of which no message has been received too often
    queue = {**queue_of(1_000), "attributes": {"RedrivePolicy": '{"maxReceiveCount": "3"}'}}
    # When it is received from ten times within a second, then it is swept once
    for _ in range(10):
        sqs._dlq_sweep(queue)
        receive(sqs, queue)
    assert sqs.sweeps == 1
    # And again after a second
    queue[tuned_queues.SWEPT_AT] -= tuned_queues.EXPIRY_SECONDS
    sqs._dlq_sweep(queue)
    assert sqs.sweeps == 2


@pytest.mark.parametrize(("received", "sweeps"), [(2, 1), (3, 2)])
def test_a_queue_is_swept_before_a_message_would_come_too_often(sqs, received, sweeps):
    # Given a queue that was just swept, and then a message that comes next was received some times
    queue = {**queue_of(20), "attributes": {"RedrivePolicy": '{"maxReceiveCount": 3}'}}
    sqs._dlq_sweep(queue)
    queue["messages"][4] |= {"receive_count": received, "visible_at": 0.0}
    # When the queue is received from, then it is swept first if the message has had all its receives
    sqs._dlq_sweep(queue)
    assert sqs.sweeps == sweeps


def test_a_fifo_queue_is_swept_each_time(sqs):
    # Given a FIFO queue, when it is received from twice, then it is swept twice, as the emulator does
    queue = {**queue_of(1, fifo=True), "attributes": {}}
    sqs._dlq_sweep(queue)
    sqs._dlq_sweep(queue)
    assert sqs.sweeps == 2
