"""DynamoDB streams: a record that cannot be handled is parked, so that it does not block its shard.

Lambda hands a shard's records over in order and repeats a failed batch until it succeeds or expires. One
record that always fails would hold up all records behind it. So such a record goes to a retry queue, which
feeds the same function; it is tried there a few more times, on its own, and ends in a dead-letter queue with
an alarm.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from fanin import names
from fanin.adapters.dynamodb import records, rows
from fanin.app.ports.words import WordKey
from fanin.app.services import Services
from fanin.domain.batch import Batch
from fanin.entry.observe import count, logger
from fanin.entry.partial_batch import partial_batch_response

StreamRecord: TypeAlias = Mapping[str, Any]
"""A stream record, or a message of the retry queue whose body is one; or the event that holds them."""

Handle: TypeAlias = Callable[[Sequence[StreamRecord]], None]
"""Handles stream records; raises if it could not, and may be called again with the same records."""

Park: TypeAlias = Callable[[StreamRecord], None]
"""Sends a stream record to the retry queue; raises if that fails."""


def consume(event: StreamRecord, handle: Handle, park: Park, *, together: bool = False) -> dict[str, Any]:
    """Handle every record of an event, which comes from a stream or from the retry queue.

    An error of ``park`` is raised: Lambda then repeats the whole batch of records, and none is lost.

    Args:
        event: what Lambda hands over; its records come from one source.
        handle: handles the records.
        park: keeps those of a stream that failed.
        together: handle all records in one call first, and each on its own only if that call fails.

    Returns:
        The partial batch response: messages of the retry queue that failed again.
    """
    arrivals: list[StreamRecord] = event["Records"]
    if together and len(arrivals) > 1 and _handled(handle, arrivals):
        return partial_batch_response([])
    failed: list[str] = []
    for arrival in arrivals:
        if _handled(handle, [arrival]):
            continue
        if _from_queue(arrival):
            failed.append(arrival["messageId"])
        else:
            park(arrival)
            count(names.METRIC_PARKED)
    return partial_batch_response(failed)


def _handled(handle: Handle, arrivals: Sequence[StreamRecord]) -> bool:
    try:
        handle([json.loads(a["body"]) if _from_queue(a) else a for a in arrivals])
    except Exception:  # noqa: BLE001  whatever it is, the records behind must go on; the caller parks it
        ids = [a.get("messageId") or a.get("eventID") for a in arrivals]
        logger.exception("could not handle records", extra={"records": ids})
        return False
    return True


def _from_queue(arrival: StreamRecord) -> bool:
    return arrival.get("eventSource") == "aws:sqs"


def ends_first(event: StreamRecord) -> StreamRecord:
    """The event with the changes of batches that had ended behind all others.

    They are removals, which may take seconds each. Nothing depends on the order: a batch is removed after its
    end.
    """
    return {**event, "Records": sorted(event["Records"], key=_had_ended)}


def _had_ended(arrival: StreamRecord) -> bool:
    state = arrival.get("dynamodb", {}).get("OldImage", {}).get(names.STATE, {}).get("S")
    return state in names.TERMINAL_STATES


def changed_batch(record: StreamRecord) -> tuple[Batch | None, Batch | None]:
    """The row before and after this change of the batches table; None where there is no row.

    The row before is left out if the batch ended with this change: its end is told, whatever that row says.

    Raises:
        KeyError, TypeError, ValueError: the record is not one of the batches table.
    """
    old, new = _images(record)
    if new is None:
        return None, None
    ended = _terminal(new) and not (old and _terminal(old))
    return None if old is None or ended else rows.decode(old), rows.decode(new)


def retried(event: StreamRecord) -> bool:
    """Whether the records of an event come from the retry queue: those of their batch may have overtaken."""
    return any(map(_from_queue, event["Records"]))


def _images(record: StreamRecord) -> tuple[rows.Item | None, rows.Item | None]:
    """The row before and after a change."""
    return record["dynamodb"].get("OldImage"), record["dynamodb"].get("NewImage")


def _terminal(image: rows.Item) -> bool:
    return image[names.STATE]["S"] in names.TERMINAL_STATES


def follow_directory(record: StreamRecord, services: Services) -> None:
    """Act on a change of the directory table: tell the bus of a registration, or update a route's rule.

    Raises:
        KeyError, ValueError: the record is not one of the directory table.
        Throttled, ServiceUnavailable: the bus was busy; call again.
    """
    images = _images(record)
    old, new = (None if image is None else records.decode(image, names.NAME) for image in images)
    namespace, name = (record["dynamodb"]["Keys"][key]["S"] for key in (names.TOPIC, names.NAME))
    services.follow_directory(namespace, name, old, new)


def finished_word(record: StreamRecord) -> WordKey | None:
    """The word whose last bit was cleared by this change of the words table; None if bits are left.

    Raises:
        KeyError, ValueError: the record is not one of the words table.
    """
    image = record["dynamodb"].get("NewImage")
    if image is None or image[names.WORD]["N"] != "0":
        return None
    return rows.word_key(image[names.WORD_ID]["S"])
