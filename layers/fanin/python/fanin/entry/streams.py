"""DynamoDB streams: records are decoded, and a bad one is parked instead of stopping its shard.

A stream hands its records on in order and repeats a failed batch until it works, so one record that can
never be handled would hold up all behind it. Here such a record goes to a retry queue, which feeds the
same function; there it is tried a few more times, alone, and ends in a dead-letter queue with an alarm.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from fanin import names
from fanin.adapters.dynamodb import records, rows
from fanin.app.ports.words import WordKey
from fanin.app.services import Services
from fanin.domain.batch import Batch, State
from fanin.entry.observe import count, logger

Record: TypeAlias = Mapping[str, Any]
Act: TypeAlias = Callable[[Sequence[Record]], None]
Park: TypeAlias = Callable[[Record], None]


def consume(event: Record, act: Act, park: Park, *, together: bool = False) -> dict[str, Any]:
    """Act on every record of an event, from a stream or back from the retry queue.

    Args:
        event: of Lambda; its records come from one source.
        act: handles stream records; raises if it could not, and may be called again with the same.
        park: sends a stream record to the retry queue; what it raises is raised.
        together: try all records in one call first, and each alone only if that fails.

    Returns:
        The partial batch response: the messages of the retry queue that failed again.
    """
    arrivals: list[Record] = event["Records"]
    if together and len(arrivals) > 1 and _done(act, arrivals):
        return {"batchItemFailures": []}
    failed = []
    for arrival in arrivals:
        if _done(act, [arrival]):
            continue
        if _from_queue(arrival):
            failed.append({"itemIdentifier": arrival["messageId"]})
        else:
            park(arrival)
            count(names.METRIC_PARKED)
    return {"batchItemFailures": failed}


def _done(act: Act, arrivals: Sequence[Record]) -> bool:
    try:
        act([json.loads(a["body"]) if _from_queue(a) else a for a in arrivals])
    except Exception:  # noqa: BLE001  whatever it is, the records behind must go on; the caller parks it
        logger.exception("could not handle records", extra={"records": [_name(a) for a in arrivals]})
        return False
    return True


def _from_queue(arrival: Record) -> bool:
    return arrival.get("eventSource") == "aws:sqs"


def _name(arrival: Record) -> str | None:
    return arrival.get("messageId") or arrival.get("eventID")


def ended_batch(record: Record) -> Batch | None:
    """The batch whose end this record of the batches table tells, if that is what it tells.

    Raises:
        KeyError, ValueError: the record is not one of the batches table.
    """
    images = record["dynamodb"]
    new, old = images.get("NewImage"), images.get("OldImage")
    if new is None or not _terminal(new) or (old is not None and _terminal(old)):
        return None
    return rows.decode(new)


def _terminal(image: Record) -> bool:
    return State(image[names.STATE]["S"]).terminal


def follow_directory(record: Record, services: Services) -> None:
    """Do what follows from a change of the directory table: tell the bus, or make a route's rule.

    Raises:
        KeyError, ValueError: the record is not one of the directory table.
        Throttled, ServiceUnavailable: the bus was busy; call again.
    """
    images = record["dynamodb"]
    old, new = (
        None if image is None else records.decode(image, names.NAME)
        for image in (images.get("OldImage"), images.get("NewImage"))
    )
    room, name = (images["Keys"][key]["S"] for key in (names.TOPIC, names.NAME))
    services.follow_directory(room, name, old, new)


def finished_word(record: Record) -> WordKey | None:
    """The word that this record of the words table tells to be finished, if it does.

    Raises:
        KeyError, ValueError: the record is not one of the words table.
    """
    image = record["dynamodb"].get("NewImage")
    if image is None or image[names.WORD]["N"] != "0":
        return None
    return rows.word_key(image[names.WORD_ID]["S"])
