"""Vehicles with queues of their own, registered in the directory; the living ones answer."""

import math
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from fanin import ReceivedMessage, Register, Tracker, names
from fanin.types import Consumer

LEAST: Final = 5
"""Seconds; the shortest timeout of a scatter."""
PATIENCE: Final = 5
"""Vehicles get this many times as long as a scatter takes when nobody is slow."""
_THREADS: Final = 8
_ROUND: Final = 0.5
"""Seconds between two looks at a vehicle's queue."""

Payload = Callable[[str], Mapping[str, Any]]

Vehicle = tuple[str, str]
"""Fleet and name; a vehicle may belong to two fleets, and then has a queue in each."""


class Vehicles:
    """Some vehicles.

    Args:
        tracker: the stack.
        topic: of a fleet, with ``{fleet}`` for its name.
        payload: what a vehicle answers.

    Attributes:
        asked: how often each vehicle handled a message.
    """

    def __init__(self, tracker: Tracker, *, topic: str = "{fleet}", payload: Payload) -> None:
        self._tracker = tracker
        self._topic = topic
        self._payload = payload
        self._queues: dict[Vehicle, str] = {}
        self.asked: Counter[Vehicle] = Counter()

    def register(self, fleet: str, vehicles: Iterable[str]) -> None:
        """Create a channel for each vehicle and register it."""

        def one(vehicle: str) -> None:
            made = self._tracker.sqs.create_queue(
                QueueName=f"vehicle-{uuid.uuid4()}", tags={names.CHANNEL_TAG: "vehicle"}
            )
            self._queues[fleet, vehicle] = made["QueueUrl"]
            self._tracker.directory.register(
                Register(self._topic.format(fleet=fleet), vehicle, made["QueueUrl"], lease=3600)
            )

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(one, vehicles))

    def scrap(self, vehicle: Vehicle) -> None:
        """Delete a vehicle's channel, which stays in the directory."""
        self._tracker.sqs.delete_queue(QueueUrl=self._queues[vehicle])

    def waiting(self, vehicle: Vehicle) -> int:
        """Messages that wait in the channel of a vehicle that does not listen."""
        attributes = self._tracker.sqs.get_queue_attributes(
            QueueUrl=self._queues[vehicle], AttributeNames=["ApproximateNumberOfMessages"]
        )["Attributes"]
        return int(attributes["ApproximateNumberOfMessages"])

    @contextmanager
    def answering(self, living: Iterable[Vehicle]) -> Iterator[None]:
        """Let these vehicles answer; each thread polls many of them in turn."""
        over = threading.Event()
        every = [self._unit(vehicle) for vehicle in living]

        def rounds(some: Sequence[Consumer]) -> None:
            while not over.wait(_ROUND):
                for unit in some:
                    unit.poll()

        threads = [
            threading.Thread(target=rounds, args=(some,), daemon=True)
            for some in (every[n::_THREADS] for n in range(_THREADS))
            if some
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def _unit(self, vehicle: Vehicle) -> Consumer:
        """The consumer that runs in a vehicle."""

        def handle(message: ReceivedMessage) -> None:
            self.asked[vehicle] += 1
            self._tracker.scatters.reply(message, dict(self._payload(vehicle[1])))

        return self._tracker.consumer(self._queues[vehicle], handle, wait=0)

    def pace(self) -> int:
        """Seconds that vehicles should get to answer, on this machine and under its load.

        Measures how long one vehicle of a fleet of its own takes. The first time starts cold functions, and
        is not measured.
        """
        fleet, vehicle, took = f"workshop-{uuid.uuid4()}", f"jig-{uuid.uuid4()}", 0.0
        self.register(fleet, [vehicle])
        with self.answering([(fleet, vehicle)]):
            for _ in range(2):
                started = time.monotonic()
                topic = self._topic.format(fleet=fleet)
                scattered = self._tracker.scatters.start(topic, {}, timeout=120)
                self._tracker.wait(scattered.batch.batch_id, timeout=120)
                took = time.monotonic() - started
        return max(LEAST, math.ceil(PATIENCE * took))
