"""Renders what it is told to; some of that cannot be, and some kills it."""

from fanin import Tracker
from fanin.errors import ItemFailed

tracker = Tracker.from_env()


@tracker.sqs_handler
def handler(message):
    if message.body == "empty":
        raise ItemFailed("nothing to render")
    if message.body == "cursed":
        raise RuntimeError("out of memory")
