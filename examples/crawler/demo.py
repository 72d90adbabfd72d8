"""A crawl on the local stack: it grows from inside, pages link in circles, and workers are killed.

``python -m examples crawler [PAGES]``
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from examples.crawler.site import reachable
from examples.deployed import deployed
from fanin import Tracker
from fanin.local import CHECKOUT, Stack, Steps, environment

PAGES = 2_000
WORKERS = 3
KILLED = 3
"""Workers that are killed in the middle of their work; another takes the place of each."""
PATIENCE = 1_800
"""Seconds that a crawl may take."""


class Crawled(NamedTuple):
    """What a crawl came to.

    Attributes:
        batch: as it is at the end.
        events: how many times the bus told its end; repeats with the same id count once.
        visited: the pages that were visited.
        visits: how often, in all.
        seconds: that it took.
    """

    batch: Any
    events: list[str]
    visited: set[int]
    visits: int
    seconds: float


def crawl(stack: Stack, folder: Path, pages: int, say: Callable[[str], object]) -> Crawled:
    """Crawl a site of so many pages, and kill some workers meanwhile.

    Args:
        stack: the local stack; its environment variables must be set.
        folder: for the list of visits.
        pages: how many there are, those that cannot be reached included.
        say: told of what happens.
    """
    sqs = stack.client("sqs")
    queue_url = sqs.create_queue(QueueName=f"pages-{time.time_ns()}")["QueueUrl"]
    tracker, began = Tracker.direct(), time.monotonic()
    visits = folder / "visits"
    visits.touch()
    with _told(stack) as told:
        with tracker.batch(user_key="crawl", close="drained", max_items=pages) as batch:
            batch.send(queue_url, ["0"], keys=lambda page: page)
        workers: list[subprocess.Popen[bytes]] = []
        try:
            killed, goal = 0, len(reachable(pages))
            while not (row := tracker.status(batch.id).batch).state.terminal:
                if time.monotonic() - began > PATIENCE:
                    raise TimeoutError(f"the crawl did not end: {tracker.why(batch.id)}")
                done = len({*visits.read_text().split()})
                while len(workers) < WORKERS:
                    workers.append(_worker(queue_url, pages, visits))
                if killed < KILLED and done > goal * (killed + 1) / (KILLED + 2):
                    killed += 1
                    workers[0].send_signal(signal.SIGKILL)
                    workers.pop(0).wait()
                    say(f"worker {killed} is killed after {done:,} pages; another takes its place")
                time.sleep(0.5)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        found = [int(line) for line in visits.read_text().split()]
        return Crawled(row, told(batch.id), set(found), len(found), time.monotonic() - began)


def _worker(queue_url: str, pages: int, visits: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "examples.crawler.worker", queue_url, str(pages), str(visits)]
    return subprocess.Popen(command, cwd=CHECKOUT)  # noqa: S603  the program is this example's own


@contextmanager
def _told(stack: Stack) -> Iterator[Callable[[int], list[str]]]:
    """Listens to the bus; gives the ids of the events of a batch's end, of which there is at least one."""
    sqs, events = stack.client("sqs"), stack.client("events")
    name = f"crawler-{time.time_ns()}"
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = json.dumps({"detail-type": ["Batch Completed"]})
    events.put_rule(Name=name, EventBusName=stack.bus, EventPattern=pattern)
    events.put_targets(Rule=name, EventBusName=stack.bus, Targets=[{"Id": "0", "Arn": arn}])

    def told(batch_id: int) -> list[str]:
        found: set[str] = set()
        until = time.monotonic() + 20
        while time.monotonic() < until and not (found and time.monotonic() > until - 17):
            for message in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages", []):
                detail = json.loads(message["Body"])["detail"]
                if detail["batch_id"] == batch_id:
                    found.add(detail["id"])
        return sorted(found)

    try:
        yield told
    finally:
        events.remove_targets(Rule=name, EventBusName=stack.bus, Ids=["0"])
        events.delete_rule(Name=name, EventBusName=stack.bus)
        sqs.delete_queue(QueueUrl=url)


def main(arguments: Sequence[str], step: Steps) -> bool:
    """Crawl, and say what came of it; whether all is as it should be."""
    pages = int(arguments[0]) if arguments else PAGES
    with tempfile.TemporaryDirectory() as root, deployed(Path(root), step) as stack:
        os.environ.update(environment(stack))
        step(f"crawling a site of {pages:,} pages with {WORKERS} workers; every message is sent twice")
        crawled = crawl(stack, Path(root), pages, lambda text: print(f"  {text}", flush=True))
        step.done()
    wanted = reachable(pages)
    batch = crawled.batch
    print(f"{len(wanted):>8,}  pages can be reached, of {pages:,}")
    print(f"{batch.items:>8,}  items, of which {batch.failed:,} failed; the batch is {batch.state}")
    print(f"{crawled.visits:>8,}  visits of pages, since messages come twice and workers die")
    print(f"{crawled.seconds:>8.0f}  seconds, {batch.items / crawled.seconds:.0f} pages a second")
    checks = {
        "exactly the pages that can be reached are done": crawled.visited == wanted
        and batch.items == len(wanted)
        and (batch.state, batch.failed) == ("complete", 0),
        "one Batch Completed": len(crawled.events) == 1,
    }
    for said, holds in checks.items():
        print("✓" if holds else "✗", said)
    return all(checks.values())
