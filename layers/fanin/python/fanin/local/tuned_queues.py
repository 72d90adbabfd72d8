"""Lets the emulator receive and delete messages without going through the whole queue each time.

For every receive the emulator completes all messages of the queue, looks whether any is past its retention
period or has been received too often, and collects all that are visible before it takes the first ten. With
100,000 messages that takes a tenth of a second and more. Here it stops at the tenth visible message, and goes
through the queue once a second, or when one of those ten has been received as often as it may. It goes
through the queue for each message that it deletes, too; here it stops at the last one that it is to delete,
and does not copy the others.
FIFO queues are received from as before.

``launcher.py`` loads this file by its path, in the emulator's own Python; so it imports nothing of fanin.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from types import FunctionType
from typing import Any

PATCHED = ("_collect_msgs", "_expire_retained", "_dlq_sweep", "_delete_messages_for_esm")
DELETING = {"DeleteMessage": "_act_delete_message", "DeleteMessageBatch": "_act_delete_message_batch"}
USED = ("_HANDLERS", "_ensure_msg_fields", "_get_q", "_queues_lock")
EXPIRY_SECONDS = 1.0
"""Between two looks for messages past their retention period, which is a minute at least."""
LOOKED_AT = "_looked_for_expired_at"
SWEPT_AT = "_swept_at"
BATCH = 10
"""Most messages of one receive."""
REMOVING = threading.RLock()
"""Held while messages are removed: by the event loop, and by the threads of event source mappings, which hold
the emulator's own lock by then."""


def tune(module: Callable[..., Any]) -> None:
    """Patch the emulator.

    Args:
        module: imports a module of the emulator; ends the process if it lacks an attribute.
    """
    sqs = module("services.sqs", *PATCHED, *DELETING.values(), *USED)
    sqs._collect_msgs = partial(_collect_first, sqs, sqs._collect_msgs)
    sqs._expire_retained = partial(_expire_now_and_then, partial(_in_place, sqs._expire_retained))
    sqs._dlq_sweep = partial(_sweep_when_due, sqs, partial(_in_place, sqs._dlq_sweep))
    for action, attribute in DELETING.items():
        sqs._HANDLERS[action] = partial(_delete_received, sqs, getattr(sqs, attribute))
        setattr(sqs, attribute, sqs._HANDLERS[action])
    sqs._delete_messages_for_esm = partial(_delete_for_mapping, sqs)


def _collect_first(
    sqs: Any, collect: Callable[..., Any], queue: Any, most: int, visibility_timeout: int
) -> Any:
    """Replaces ``_collect_msgs``: hands it the messages that it takes, not the whole queue."""
    if not queue["is_fifo"]:
        queue = {**queue, "messages": list(islice(_visible(sqs, queue), most))}
    return collect(queue, most, visibility_timeout)


def _visible(sqs: Any, queue: Any) -> Iterator[Any]:
    now = time.time()
    for message in queue["messages"]:
        if "visible_at" not in message:  # other services put messages into a queue without some fields
            sqs._ensure_msg_fields(message)
        if message["visible_at"] <= now:
            yield message


def _in_place(rebuild: Callable[[Any], None], queue: Any) -> None:
    """Replaces a function that gives a queue a new list of its messages: removes from the old one instead.

    Otherwise a message that another thread sends or deletes meanwhile would be lost, or come back.
    """
    with REMOVING:
        messages = queue["messages"]
        seen = list(messages)
        shown = {**queue, "messages": seen}
        rebuild(shown)
        if shown["messages"] is not seen:
            kept = set(map(id, shown["messages"]))
            _remove(messages, [at for at, message in enumerate(seen) if id(message) not in kept])


def _expire_now_and_then(expire: Callable[[Any], None], queue: Any) -> None:
    """Replaces ``_expire_retained``: looks once a second."""
    if _due(queue, LOOKED_AT):
        expire(queue)


def _sweep_when_due(sqs: Any, sweep: Callable[[Any], None], queue: Any) -> None:
    """Replaces ``_dlq_sweep``, which moves messages that were received too often to the dead-letter queue.

    It must run before such a message is handed out again, and now and then for the others.
    """
    next_ones = islice(_visible(sqs, queue), BATCH)
    if queue["is_fifo"] or _due(queue, SWEPT_AT) or _received_too_often(queue, next_ones):
        sweep(queue)


def _due(queue: Any, what: str) -> bool:
    """Whether a second has passed since this was last due for a queue."""
    now = time.time()
    if now - queue.get(what, -EXPIRY_SECONDS) < EXPIRY_SECONDS:
        return False
    queue[what] = now
    return True


def _received_too_often(queue: Any, messages: Iterator[Any]) -> bool:
    try:
        most = int(json.loads(queue["attributes"].get("RedrivePolicy") or "{}").get("maxReceiveCount", 0))
    except (AttributeError, TypeError, ValueError):  # the emulator takes no notice of such a policy either
        return False
    return most > 0 and any(message["receive_count"] >= most for message in messages)


def _delete_received(sqs: Any, delete: FunctionType, data: Any, url: str) -> Any:
    """Replaces a function that deletes messages: shows it those that it is to delete, not the whole queue."""
    queue = sqs._get_q(data.get("QueueUrl", url), "sqs:DeleteMessage")
    entries = [data, *(data.get("Entries") or [])]
    with sqs._queues_lock, REMOVING:
        messages = queue["messages"]
        places = _places(messages, {entry.get("ReceiptHandle") for entry in entries})
        shown = {**queue, "messages": [messages[at] for at in places]}
        # The same code, which finds the few messages as its queue.
        scope = {**vars(sqs), "_get_q": lambda *_: shown}
        answer = FunctionType(delete.__code__, scope)(data, url)
        kept = set(map(id, shown["messages"]))
        _remove(messages, [at for at in places if id(messages[at]) not in kept])
    return answer


def _delete_for_mapping(sqs: Any, queue_url: str, handles: set[str]) -> None:
    """Replaces ``_delete_messages_for_esm``, which runs in the threads of event source mappings.

    It builds no new list, so a message that is sent meanwhile is not lost with the old one.
    """
    with sqs._queues_lock, REMOVING:
        messages = sqs._get_q(queue_url)["messages"]
        _remove(messages, _places(messages, handles))


def _places(messages: list[Any], handles: set[Any]) -> list[int]:
    """Where the messages with these receipt handles are; received ones stand near the front."""
    wanted = handles - {None, ""}
    has_one = (at for at, message in enumerate(messages) if message.get("receipt_handle") in wanted)
    return list(islice(has_one, len(wanted)))


def _remove(messages: list[Any], places: list[int]) -> None:
    """Remove the messages at some places, which ascend, in place.

    Neighbours go at once. A new list would touch every message, which takes 9 ms with 300,000 of them.
    """
    end = len(places)
    while end:
        start = end - 1
        while start and places[start - 1] == places[start] - 1:
            start -= 1
        del messages[places[start] : places[end - 1] + 1]
        end = start
