"""Runs all vehicles of all fleets, each in a thread of its own, some of them with a mishap."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Self

from examples.fleet.mishaps import Gone, InTunnel, Mute, Scrapped, Slow, Stuttering, Wavering
from examples.fleet.onboard import OnBoardUnit
from examples.fleet.roster import Fleet, Vehicle
from fanin import Tracker
from fanin.types import ReplyReceipt

MISHAPS: Final[dict[str, type[OnBoardUnit]]] = {
    "HC-102": Slow,
    "HC-104": Mute,
    "HC-105": Stuttering,
    "HC-107": InTunnel,
    "HC-109": Gone,
    "HC-110": Wavering,
    "HC-112": Scrapped,
    "AHS-102": InTunnel,
    "AHS-103": Slow,
    "AHS-104": Gone,
    "AHS-108": Mute,
}
CONNECTING: Final = 8


class Road:
    """The vehicles on the road; they run inside a ``with`` block.

    Args:
        fleets: the fleets whose vehicles are on the road.
        tracker: a tracker with the credentials of a vehicle; all threads share it.

    Attributes:
        units: plate → the unit on board.
    """

    def __init__(self, fleets: Iterable[Fleet], tracker: Tracker) -> None:
        self._tracker = tracker
        self._tunnel_ends = threading.Event()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        vehicles = [vehicle for fleet in fleets for vehicle in fleet.vehicles.values()]
        self.units = {vehicle.plate: self._unit(i, vehicle) for i, vehicle in enumerate(vehicles)}

    def __enter__(self) -> Self:
        """Connect all vehicles, and start their threads; those with the shortest lease come first."""
        order = sorted(self.units.values(), key=lambda unit: unit.lease)
        with ThreadPoolExecutor(CONNECTING) as pool:
            for _ in pool.map(OnBoardUnit.connect, order):
                pass
        for unit in order:
            thread = threading.Thread(target=unit.run, args=(self._over.is_set,), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        if failed is None:
            for unit in self.units.values():
                if isinstance(unit, Mute):
                    unit.leave()  # all others have left by themselves

    def of(self, kind: type[OnBoardUnit]) -> list[Any]:
        """The units of the vehicles with a mishap."""
        return [unit for unit in self.units.values() if type(unit) is kind]

    def age(self, registered: Callable[[], set[str]], patience: float = 60) -> None:
        """Wait until the leases of dead vehicles have expired, and delete the queue of the scrapped one.

        Args:
            registered: returns the plates that the directory lists.
            patience: seconds to wait.

        Raises:
            TimeoutError: a lease did not expire in time.
        """
        gone = {unit.vehicle.plate for unit in self.of(Gone)}
        eventually(lambda: not gone & registered(), "a lease has not expired", patience)
        for unit in self.of(Scrapped):
            unit.scrap()

    def end_of_tunnel(self, answers: int, patience: float = 60) -> None:
        """Let the vehicles in the tunnel answer, and wait until they have.

        Args:
            answers: how many answers they owe together.
            patience: seconds to wait.

        Raises:
            TimeoutError: an answer did not arrive in time.
        """
        self._tunnel_ends.set()
        late = self.of(InTunnel)
        eventually(
            lambda: sum(len(u.receipts) for u in late) >= answers,
            "the late answers have not arrived",
            patience,
        )

    def receipts(self, batch_id: int) -> list[ReplyReceipt]:
        """The receipts of all answers to a scatter that were sent over HTTPS."""
        return [one for unit in self.units.values() for one in unit.receipts if one.batch_id == batch_id]

    def _unit(self, number: int, vehicle: Vehicle) -> OnBoardUnit:
        kind = MISHAPS.get(vehicle.plate, OnBoardUnit)
        if kind is InTunnel:
            return InTunnel(vehicle, self._tracker, out=self._tunnel_ends)
        if kind is Slow or (kind is OnBoardUnit and number % 2):
            return kind(vehicle, self._tracker, via="queue")
        return kind(vehicle, self._tracker)


def eventually(holds: Callable[[], bool], or_else: str, patience: float) -> None:
    """Wait until something holds.

    Args:
        holds: checks it.
        or_else: begins the message of the error.
        patience: seconds to wait.

    Raises:
        TimeoutError: it did not hold in time.
    """
    until = time.monotonic() + patience
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError(f"{or_else} after {patience:.0f} s")
        time.sleep(0.2)
