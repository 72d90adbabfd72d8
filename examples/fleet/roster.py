"""The fleets and their vehicles, as the office has them in its books."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Model:
    """A kind of vehicle.

    Attributes:
        name: as people say it.
        fuel: what it burns.
        tank_ml: what fits in.
        ml_per_km: what it burns on the whole.
        trips_a_day: on a working day.
        usual_km: length of a usual trip.
    """

    name: str
    fuel: str
    tank_ml: int
    ml_per_km: int
    trips_a_day: int
    usual_km: float


@dataclass(frozen=True)
class Vehicle:
    """A vehicle.

    Attributes:
        plate: its name everywhere: in the directory, in replies, in the report.
        fleet: key of its fleet.
        model: what it is.
    """

    plate: str
    fleet: str
    model: Model

    @property
    def attributes(self) -> dict[str, str]:
        """What the directory knows of it."""
        return {"fleet": self.fleet, "model": self.model.name, "fuel": self.model.fuel}


@dataclass(frozen=True)
class Fleet:
    """A fleet.

    Attributes:
        key: short name.
        name: full name.
        vehicles: by plate.
    """

    key: str
    name: str
    vehicles: dict[str, Vehicle]


CADDY: Final = Model("VW Caddy", "diesel", 50_000, 53, 6, 14)
KANGOO: Final = Model("Renault Kangoo", "petrol", 54_000, 68, 7, 11)
TRANSIT: Final = Model("Ford Transit", "diesel", 70_000, 84, 4, 38)
YARIS: Final = Model("Toyota Yaris Hybrid", "petrol", 36_000, 41, 9, 8)
SPRINTER: Final = Model("Mercedes Sprinter", "diesel", 75_000, 93, 3, 61)
DUSTER: Final = Model("Dacia Duster", "petrol", 50_000, 66, 4, 27)


def _fleet(key: str, name: str, sign: str, models: tuple[Model, ...], size: int) -> Fleet:
    vehicles = (Vehicle(f"{sign}-{101 + i}", key, models[i % len(models)]) for i in range(size))
    return Fleet(key, name, {vehicle.plate: vehicle for vehicle in vehicles})


HARBOUR: Final = _fleet("harbour", "Harbour Couriers", "HC", (CADDY, KANGOO, TRANSIT, YARIS), 12)
WORKSHOP: Final = _fleet("workshop", "The Workshop's Loan Cars", "WLC", (CADDY, KANGOO), 2)
"""Nothing ever happens to these."""
ALPINE: Final = _fleet("alpine", "Alpine Huts & Supplies", "AHS", (SPRINTER, DUSTER), 8)
