"""A program for tests: a receiver that hangs while it handles an envelope, so that it can be killed there.

Usage: ``python -m tests.e2e.crashing_receiver <URL of the API> <queue URL> <endpoint> <lease>``. It prints
the item, when it began, and when its lease ends, in seconds since the epoch.
"""

import signal
import sys
import time
from contextlib import suppress

import boto3

from fanin import IdempotentReceiver, Tracker
from fanin.client.frames.sqs import SqsReceiver
from fanin.errors import FaninError
from fanin.types import Delivery


def main(api_url: str, queue_url: str, endpoint: str, lease: str) -> None:
    session = boto3.Session()
    tracker = Tracker.over_https(api_url, session=session, region=session.region_name)

    def stop(delivery: Delivery) -> None:
        sys.stdout.write(f"{delivery.item} {time.time()} {delivery.fencing_token}\n")
        sys.stdout.flush()
        signal.pause()

    receiver = SqsReceiver(
        IdempotentReceiver(tracker.frames, stop, tracker.acknowledger("api"), lease=int(lease))
    )
    sqs = session.client("sqs", endpoint_url=endpoint)
    while True:
        with suppress(FaninError):
            receiver.poll(sqs, queue_url, wait=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
