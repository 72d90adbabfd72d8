"""What the frameworks have in common: telling what became of an item, and calling failed ones again."""

import logging
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from fanin.client.tracker import AckPath, Tracker
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.limits import MAX_REASON
from fanin.domain.marks import Failure, Mark
from fanin.errors import REFUSALS, FaninError, InvalidRequest

logger = logging.getLogger("fanin")

TASK = "fanin-task"
"""Attribute of a kept message: the name of the task that was called."""
ENCODING = "fanin-encoding"


def tell(tracker: Tracker, via: AckPath, mark: Mark) -> FaninError | None:
    """Mark an item. A mark that will never be taken is logged, and counts as told.

    Arguments that are too large to be kept are left out of a failure: it must not be lost with them.

    Returns:
        Why the mark must be told again; None if it is told.
    """
    try:
        error = tracker.acknowledger(via)([mark]).get(0)
    except FaninError as wrong:  # this process lacks a setting
        error = wrong
    if not isinstance(error, REFUSALS):
        return error
    if isinstance(mark, Failure) and mark.message is not None:
        return tell(tracker, via, without_message(mark, str(error)))
    logger.error("item %s is not marked: %s", getattr(mark, "item", mark), error)
    return None


def without_message(failure: Failure, why: str) -> Failure:
    """The failure, with the reason why its arguments are not kept."""
    note = f" (its arguments are not kept: {why})"[:MAX_REASON]
    return replace(failure, message=None, reason=failure.reason[: MAX_REASON - len(note)] + note)


def kept_call(task: str, payload: bytes, attributes: Mapping[str, str]) -> KeptMessage:
    """A call of a task as a message that is kept; ``payload_of`` reads it.

    Args:
        task: its name.
        payload: the arguments, as the framework writes them. What is not text is kept as base64.
        attributes: what the framework needs to read them.
    """
    try:
        body, encoding = payload.decode(), "text"
    except UnicodeDecodeError:
        body, encoding = b64encode(payload).decode(), "base64"
    named = {**attributes, TASK: task, ENCODING: encoding}
    return KeptMessage(body, {name: MessageAttribute("String", value) for name, value in named.items()})


def attribute(kept: KeptMessage, name: str) -> str:
    """The text of an attribute of a kept call.

    Raises:
        KeyError: the message was not kept of a call.
    """
    return str(kept.attributes[name].value)


def payload_of(kept: KeptMessage) -> bytes:
    """The arguments of a kept call, as the framework wrote them."""
    return b64decode(kept.body) if attribute(kept, ENCODING) == "base64" else kept.body.encode()


def call_again(tracker: Tracker, batch_id: int, call: Callable[[str, KeptMessage], object]) -> int:
    """Open a batch with the failed items of another, and call their tasks again.

    A repeat goes on with the same batch. Failures of which no call was kept are left out.

    Args:
        tracker: finds the batch.
        batch_id: the batch whose items failed.
        call: sends the task of a kept call under a new item id.

    Returns:
        The id of the new batch.

    Raises:
        InvalidRequest: no failed item of the batch has kept its arguments.
    """
    kept = [one.item for one in tracker.iter_failures(batch_id) if one.kept]
    if not kept:
        raise InvalidRequest(f"no failed item of batch {batch_id} has kept its arguments; nothing was sent")
    with tracker.batch(retry_of=batch_id, key=f"again {batch_id}", on_error="leave") as batch:
        if batch.row.state is State.OPEN:
            for item, failed in zip(batch.add(len(kept), key="failed"), kept, strict=True):
                message = None
                with suppress(FaninError):
                    message = tracker.kept_message(failed)
                if message is None or TASK not in message.attributes:
                    batch.fail(item, f"no call of item {failed} was kept")
                else:
                    call(item, message)
    return batch.id
