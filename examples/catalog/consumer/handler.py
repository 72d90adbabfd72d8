"""Imports one airport of the catalog: checks the row, finds the nearest hub, and writes to the table."""

import os
from functools import cache
from typing import Any

import boto3
from airports import HUBS, Malformed, parse, parse_what_is_there

from fanin import ItemFailed, ReceivedMessage, Tracker

tracker = Tracker.from_env()
LENIENT = os.environ.get("LENIENT") == "yes"  # import malformed rows, too, without what is malformed


@cache
def table() -> Any:
    return boto3.resource("dynamodb").Table(os.environ["AIRPORTS_TABLE"])


@tracker.sqs_handler(via="queue")
def handler(message: ReceivedMessage) -> None:
    try:
        airport = parsed(message)
    except Malformed as error:
        raise ItemFailed(str(error)) from error  # the row is wrong for good: SQS need not send it again
    table().put_item(Item=airport)  # after any other error SQS sends the message again
    message.add(bytes=len(message.body.encode()), hubs=int(airport.get("iata") in HUBS))


def parsed(message: ReceivedMessage) -> dict[str, Any]:
    if LENIENT:
        return parse_what_is_there(message.json(), f"row-{message.attributes['row']}")
    return parse(message.json())
