"""A sender and receivers whose requests all go through a failing network; some receivers die, too."""

import os
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from fanin import IdempotentReceiver, OpenFrame, Repeater, SqliteRepeatBuffer
from fanin.adapters.backoff import Backoff
from fanin.client.frames.sqs import SqsReceiver, SqsTransport
from fanin.client.tracker import Tracker
from fanin.errors import FaninError
from fanin.local import Stack
from fanin.types import Delivery
from tests.e2e.faults import FaultProxy

ROOT = Path(__file__).parents[2]
RECEIVERS = 6
LEASE = 3
FRAME = 500
PACE = 200
"""Most envelopes that are handled per second."""
PATIENCE = 240
"""Seconds without progress after which a run stops."""
DYING = 0.01
"""Share of envelopes at which the receiver dies; it then holds leases on up to ten."""


class Dies(BaseException):
    """A receiver dies; no code catches this."""


class Attempt(NamedTuple):
    """A receiver began to handle an envelope: when, and when its lease ends, in seconds."""

    began: float
    until: float


class Crossing:
    """One run.

    Args:
        stack: the stack under test.
        caller: session of the user who calls it.
        proxy: the proxy through which all requests go.
        envelopes: URL of the queue; its visibility timeout equals the lease.

    Attributes:
        attempts: item id → the attempts to handle it.
        effects: item id → payload, as stored by a handler that uses its receipt.
        killed: items during whose handling a process was killed.
        abandoned: number of threads that ended while they handled an item.
    """

    def __init__(self, stack: Stack, caller: boto3.Session, proxy: FaultProxy, envelopes: str) -> None:
        self._endpoint = f"http://127.0.0.1:{proxy.port}"
        self._api_url = self._endpoint + urlsplit(stack.api_url).path
        self._envelopes = self._endpoint + urlsplit(envelopes).path
        self._caller = caller
        self._region = stack.region
        self._rng = Random(0)
        self._lock = Lock()
        self._over = Event()
        self._progress = 0, 0
        self._patient_until = 0.0
        self.attempts: defaultdict[str, list[Attempt]] = defaultdict(list)
        self.effects: dict[str, bytes] = {}
        self.killed: list[str] = []
        self.abandoned = 0

    def run(self, payloads: list[bytes], buffer: SqliteRepeatBuffer, *, casualties: int) -> None:
        """Send payloads and receive them, until the buffer is empty or nothing progresses any more.

        Args:
            payloads: what to deliver.
            buffer: the repeat buffer of the sender.
            casualties: number of processes that are killed while they handle an envelope, before others
                start.
        """
        repeater = Repeater(
            self._tracker().frames,
            SqsTransport(self._sqs(), self._envelopes),
            buffer,
            template=OpenFrame(FRAME),
            # Envelopes that are still in the queue are not lost; repeating them too early only slows the run
            # down.
            backoff=Backoff(base=max(2, len(payloads) / PACE), cap=120),
        )
        for payload in payloads:
            repeater.put(payload)
        repeater.run(lambda: not buffer.waiting or self._stuck(buffer), pause=0.2)
        self._kill(casualties)
        threads = [Thread(target=self._live, daemon=True) for _ in range(RECEIVERS)]
        for thread in threads:
            thread.start()
        repeater.run(lambda: not buffer.usage.envelopes or self._stuck(buffer), pause=0.2)
        self._over.set()
        for thread in threads:
            thread.join(30)

    def _stuck(self, buffer: SqliteRepeatBuffer) -> bool:
        """Whether for a long time nothing was sent for the first time, and nothing had a new effect."""
        now = len(self.effects), buffer.waiting
        if now != self._progress:
            self._progress, self._patient_until = now, time.monotonic() + PATIENCE
        return time.monotonic() > self._patient_until

    def overlaps(self) -> list[str]:
        """Items that a receiver began to handle during the lease of another receiver."""
        return [
            item
            for item, attempts in self.attempts.items()
            if any(later.began < earlier.until for earlier, later in pairwise(sorted(attempts)))
        ]

    def _tracker(self) -> Tracker:
        return Tracker.over_https(self._api_url, session=self._caller, region=self._region)

    def _sqs(self) -> Any:
        config = Config(read_timeout=10, retries={"total_max_attempts": 3}, max_pool_connections=4)
        return self._caller.client("sqs", endpoint_url=self._endpoint, config=config)

    def _kill(self, count: int) -> None:
        keys = self._caller.get_credentials()
        assert keys is not None
        environment = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": keys.access_key,
            "AWS_SECRET_ACCESS_KEY": keys.secret_key,
            "AWS_DEFAULT_REGION": self._region,
        }
        program = [sys.executable, "-m", "tests.e2e.crashing_receiver"]
        processes = [
            subprocess.Popen(
                [*program, self._api_url, self._envelopes, self._endpoint, str(LEASE)],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(count)
        ]
        for process in processes:
            with process:
                try:
                    assert process.stdout is not None
                    item, began, until = process.stdout.readline().split()
                finally:
                    process.kill()
            self.killed.append(item)
            self.attempts[item].append(Attempt(float(began), float(until)))

    def _live(self) -> None:
        """Receive; when a receiver dies, a new one takes its place and knows nothing of it."""
        while not self._over.is_set():
            try:
                self._receive()
            except Dies:
                self.abandoned += 1

    def _receive(self) -> None:
        tracker, sqs = self._tracker(), self._sqs()
        receiver = SqsReceiver(
            IdempotentReceiver(tracker.frames, self._handle, tracker.acknowledger("api"), lease=LEASE)
        )
        while not self._over.is_set():
            with suppress(FaninError):
                receiver.poll(sqs, self._envelopes, wait=1)

    def _handle(self, delivery: Delivery) -> None:
        with self._lock:
            self.attempts[delivery.item].append(Attempt(time.time(), delivery.fencing_token))
            dying = self._rng.random() < DYING
            before = self._rng.random() < 0.5
        if dying and before:
            raise Dies
        with self._lock:
            self.effects.setdefault(delivery.item, delivery.payload)
        if dying:
            raise Dies
