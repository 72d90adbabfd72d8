"""Fans a catalog out on the local stack, redrives what failed, and checks that all counts agree.

    make demo            2,000 airports
    make demo ITEMS=all  all 28,000

The functions are the same as on AWS, deployed from the same templates to an emulator of this demo. It is
stopped at the end, also after Ctrl-C.
"""

import argparse
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from examples.catalog.mending import mend, opened, wake
from examples.catalog.meter import Meter
from examples.catalog.report import Counts, Outcome, metrics, report
from examples.catalog.rows import Catalog, comes_again
from examples.catalog.site import Site, metered, site
from fanin import Tracker
from fanin.local import CHECKOUT, Steps
from fanin.types import Diagnosis, TrackedBatch

HOME = CHECKOUT / ".fanin" / "demo"
LONGEST = 900  # seconds after which the demo gives up
SETTLING = 30  # seconds that the last duplicates may take after the event
WORKERS = 8


class Listener(threading.Thread):
    """A subscriber that waits for the end of the batch, on a queue that the bus feeds.

    Attributes:
        heard: (time of arrival in ms since 1970, event), in order of arrival.
    """

    def __init__(self, sqs: Any, queue_url: str) -> None:
        super().__init__(daemon=True)
        self._sqs = sqs
        self._queue_url = queue_url
        self._over = threading.Event()
        self.heard: list[tuple[int, dict[str, Any]]] = []

    def run(self) -> None:
        try:
            while not self._over.is_set():
                self._listen()
        except BotoCoreError:
            return  # the emulator has stopped; the main thread notices that, too, and reports it

    def _listen(self) -> None:
        answer = self._sqs.receive_message(QueueUrl=self._queue_url, WaitTimeSeconds=1)
        now = time.time_ns() // 1_000_000
        for message in answer.get("Messages", []):
            self.heard.append((now, json.loads(message["Body"])))
            self._sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"])

    def of(self, batch_id: int) -> list[tuple[int, dict[str, Any]]]:
        """What was heard of one batch; the bus may tell of others."""
        return [(at, event) for at, event in self.heard if event["detail"].get("batch_id") == batch_id]

    def stop(self) -> None:
        self._over.set()
        self.join()


def fan_out(
    batch: TrackedBatch, sqs: Any, queue_url: str, catalog: Catalog, sent: Callable[[int], None]
) -> None:
    """Send the catalog as one batch, with every twentieth message twice, and close it."""
    entries: list[dict[str, Any]] = []
    hook = "provide-client-params.sqs.SendMessageBatch"
    sqs.meta.events.register(hook, lambda params, **_: entries.extend(params["Entries"]))
    batch.send(queue_url, catalog.messages(), progress=sent)
    again = [
        {key: value for key, value in entry.items() if key != "Id"}
        for entry in entries
        if comes_again(int(entry["MessageAttributes"]["row"]["StringValue"]))
    ]
    for start in range(0, len(again), 10):
        ten: list[Any] = [
            {"Id": str(number), **entry} for number, entry in enumerate(again[start : start + 10])
        ]
        sqs.send_message_batch(QueueUrl=queue_url, Entries=ten)
    batch.close()


def settled_counts(place: Site, catalog: Catalog) -> Counts:
    """The counts of acknowledgements, after the last repeated messages have been acknowledged, too.

    They are read from the log. The emulator may keep the last lines of a worker until its next invocation, so
    the function is invoked with no records.
    """
    lambdas = place.stack.client("lambda")
    patience = time.monotonic() + SETTLING
    while True:
        counts = metrics(place.stack, place.acks)
        marked = counts.first + counts.failed
        if (marked >= len(catalog.rows) and counts.duplicate >= catalog.again) or time.monotonic() > patience:
            return counts
        with ThreadPoolExecutor(WORKERS) as pool:
            for _ in range(WORKERS):
                pool.submit(lambdas.invoke, FunctionName=place.acks, Payload=b'{"Records": []}')
        time.sleep(0.2)


def imported(place: Site) -> int:
    """Number of airports in the table of the example."""
    pages = place.stack.client("dynamodb").get_paginator("scan")
    found = pages.paginate(TableName=place.outputs["AirportsTable"], Select="COUNT", ConsistentRead=True)
    return sum(page["Count"] for page in found)


def run(
    place: Site,
    catalog: Catalog,
    tracker: Tracker,
    console: Console,
    *,
    metering: AbstractContextManager[Meter | None],
    step: Steps,
) -> bool:
    """Fan out, wait for the event, redrive what failed, and print the results.

    Args:
        place: where everything is.
        catalog: what to import.
        tracker: of the same stack.
        console: for the results.
        metering: counts the rows that fanin writes; a null context where nothing can count them.
        step: shows what happens.

    Returns:
        Whether all counts agree.

    Raises:
        TimeoutError: the batch has not ended after 15 minutes.
    """
    listener = Listener(place.stack.client("sqs"), place.outputs["ToldQueueUrl"])
    bar = Progress(
        TextColumn("{task.description:>6}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with metering as meter:
        listener.start()
        user_key = f"airports-{uuid.uuid4().hex[:8]}"
        execution = wake(place, user_key)
        batch_id = opened(tracker, user_key)
        fanning = f"fanning {len(catalog.rows):,} airports out as batch {batch_id}, and waiting for its end"
        (step.line if console.is_terminal else step)(fanning)
        asked: Diagnosis | None = None
        started = time.monotonic()
        try:
            with bar:
                sending = bar.add_task("sent", total=len(catalog.rows))
                doing = bar.add_task("done", total=len(catalog.rows))
                fan_out(
                    tracker.attach(batch_id),
                    tracker.sqs,
                    place.outputs["RowsQueueUrl"],
                    catalog,
                    lambda n: bar.advance(sending, n),
                )
                while not listener.of(batch_id):
                    asked = asked or tracker.why(batch_id)
                    bar.update(doing, completed=tracker.status(batch_id, exact=True).done_min)
                    if time.monotonic() - started > LONGEST:
                        raise TimeoutError(f"batch {batch_id} has not ended after {LONGEST} s")
                    time.sleep(0.2)
                bar.update(doing, completed=tracker.status(batch_id, exact=True).done_min)
            took = time.monotonic() - started
            step("reading what the functions have counted")
            counts = settled_counts(place, catalog)
            writes, first_imported = Counter(meter.writes if meter else {}), imported(place)
            mended = mend(place, tracker, batch_id, execution, step)
        finally:
            listener.stop()
        heard = listener.of(batch_id)
        heard_at, event = heard[0]
        ended_at = datetime.fromisoformat(event["detail"]["ended_at"])
        outcome = Outcome(
            catalog=catalog,
            progress=tracker.status(batch_id, exact=True),
            verdict=tracker.verify(batch_id),
            events=[event for _, event in heard],
            event_ms=heard_at - round(ended_at.timestamp() * 1000),
            counts=counts,
            writes=writes,
            imported=first_imported,
            seconds=took,
            asked=asked,
            mended=mended,
            imported_at_last=imported(place),
        )
    step.done()
    return report(outcome, place.stack, console)


def main(arguments: Sequence[str], step: Steps) -> bool:
    """Run the demo; whether all counts agree."""
    parser = argparse.ArgumentParser(description="Fan a catalog out on the local stack.")
    parser.add_argument("--items", default="2000", help="number of airports, or all")
    parser.add_argument(
        "--root", type=Path, default=HOME, help="folder for the state and the log of the emulator"
    )
    options = parser.parse_args(arguments)
    if options.items != "all" and not options.items.isdecimal():
        parser.error(f"--items is {options.items!r}; it must be a number, or all")
    catalog = Catalog.load(None if options.items == "all" else max(1, int(options.items)))
    with site(options.root, step) as place:
        return run(place, catalog, Tracker.local(options.root), Console(), metering=metered(place), step=step)
