"""A worker of the crawl: ``python -m examples.crawler.worker QUEUE PAGES VISITS``, as many as one likes.

It may be killed at any moment. Whatever it sends, it sends twice, as a queue may deliver it.
"""

import sys
from pathlib import Path
from typing import Any

import boto3

from examples.crawler.site import links
from fanin import ReceivedMessage, Tracker

HIDDEN = 10
"""Seconds until the messages of a killed worker come again."""


class Twice:
    """A client of SQS whose messages all arrive twice."""

    def __init__(self) -> None:
        self._sqs = boto3.client("sqs")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sqs, name)

    def send_message_batch(self, **request: Any) -> Any:
        self._sqs.send_message_batch(**request)
        return self._sqs.send_message_batch(**request)


def main(queue_url: str, pages: int, visits: Path) -> None:
    """Crawl until killed; each visit of a page is a line of a file."""
    twice = Twice()
    direct = Tracker.direct()
    tracker = Tracker(direct.services, lambda: twice)  # type: ignore[arg-type,return-value]

    def crawl(message: ReceivedMessage) -> None:
        page = int(message.body)
        with visits.open("a") as file:
            file.write(f"{page}\n")
        message.add_items([str(link) for link in links(page, pages)], queue_url, keys=lambda link: link)

    tracker.consumer(queue_url, crawl, wait=1, visibility_timeout=HIDDEN).run()


if __name__ == "__main__":
    queue, number, file = sys.argv[1:]
    main(queue, int(number), Path(file))
