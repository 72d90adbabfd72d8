"""The fleets and their vehicles, as the office lists them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Model:
    """A model of vehicles.

    Attributes:
        name: its name.
        fuel: ``diesel`` or ``petrol``.
        tank_ml: capacity of the tank in millilitres.
        ml_per_km: average consumption in millilitres per kilometre.
        trips_a_day: average number of trips on a working day.
        usual_km: typical length of a trip in kilometres.
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
        plate: its number plate, which is its name in the directory, in replies and in the report.
        fleet: key of its fleet.
        model: its model.
    """

    plate: str
    fleet: str
    model: Model

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of its registration in the directory."""
        return {"fleet": self.fleet, "model": self.model.name, "fuel": self.model.fuel}


@dataclass(frozen=True)
class Fleet:
    """A fleet.

    Attributes:
        key: short name.
        name: full name.
        vehicles: plate → vehicle.
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
"""These vehicles have no mishaps."""
ALPINE: Final = _fleet("alpine", "Alpine Huts & Supplies", "AHS", (SPRINTER, DUSTER), 8)
