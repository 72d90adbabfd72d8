"""A program for tests: a consumer that hangs at a given point, so that it can be killed there.

Usage: ``python -m tests.e2e.crashing_consumer <queue URL> before|after``. It hangs before its ack, or after
its ack and before it deletes the message. It prints "there" when it has reached that point.
"""

import signal
import sys
from collections.abc import Mapping, Sequence

from fanin.client.consuming.consumer import Consumer
from fanin.client.tracker import Tracker
from fanin.domain.marks import Mark
from fanin.errors import FaninError


def main(queue_url: str, point: str) -> None:
    tracker = Tracker.from_env()
    ack = tracker.acknowledger("api")

    def stop(marks: Sequence[Mark]) -> Mapping[int, FaninError]:
        unsettled = ack(marks) if point == "after" else {}
        sys.stdout.write("there\n")
        sys.stdout.flush()
        signal.pause()
        return unsettled

    Consumer(tracker.sqs, queue_url, lambda message: message.body, stop, visibility_timeout=2).poll()


if __name__ == "__main__":
    main(*sys.argv[1:])
