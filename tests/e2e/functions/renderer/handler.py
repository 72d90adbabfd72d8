"""Renders messages; an empty one fails for good, and a cursed one raises an error."""

from fanin import Tracker
from fanin.errors import ItemFailed

tracker = Tracker.from_env()


@tracker.sqs_handler
def handler(message):
    if message.body == "empty":
        raise ItemFailed("nothing to render")
    if message.body == "cursed":
        raise RuntimeError("out of memory")
