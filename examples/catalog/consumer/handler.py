"""Imports one airport of the catalog: checks the row, finds the nearest hub, and writes to the table."""

import os
from functools import cache
from typing import Any

import boto3
from airports import Malformed, parse

from fanin import ItemFailed, ReceivedMessage, Tracker

tracker = Tracker.from_env()


@cache
def table() -> Any:
    return boto3.resource("dynamodb").Table(os.environ["AIRPORTS_TABLE"])


@tracker.sqs_handler(via="queue")
def handler(message: ReceivedMessage) -> None:
    try:
        airport = parse(message.json())
    except Malformed as error:
        raise ItemFailed(str(error)) from error  # the row is wrong for good: SQS need not send it again
    table().put_item(Item=airport)  # after any other error SQS sends the message again
