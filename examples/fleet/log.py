"""The log of a vehicle: its trips and fill-ups, week by week. They are invented, but always the same.

All figures are integers in small units, so that sums are exact: metres, seconds, millilitres, cents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from random import Random
from typing import Any, Self

from examples.fleet.roster import Vehicle

PRICES = {"diesel": 1_629, "petrol": 1_749}  # thousandths of a euro per litre
WORKDAYS = 6
RESERVE = 0.1  # share of the tank below which a vehicle fills up
FULL = 0.97  # share of the tank after a fill-up


@dataclass(frozen=True, order=True)
class Week:
    """A week of ISO 8601, Monday to Sunday; ``str`` and ``parse`` use the form ``2026-W46``."""

    year: int
    number: int

    @classmethod
    def of(cls, day: date) -> Self:
        return cls(*day.isocalendar()[:2])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a week such as ``2026-W46``.

        Raises:
            ValueError: the text is not a week.
        """
        year, _, number = text.partition("-W")
        return cls.of(date.fromisocalendar(int(year), int(number), 1))

    @property
    def monday(self) -> date:
        return date.fromisocalendar(self.year, self.number, 1)

    def __add__(self, weeks: int) -> Week:
        return Week.of(self.monday + timedelta(weeks=weeks))

    def __sub__(self, weeks: int) -> Week:
        return self + -weeks

    def __str__(self) -> str:
        return f"{self.year}-W{self.number:02}"


FIRST = Week(2025, 1)
"""The first week of all logs."""


@dataclass(frozen=True)
class Trip:
    """A trip; start and end are local times in ISO 8601."""

    start: str
    end: str
    distance_m: int
    fuel_ml: int

    @property
    def duration_s(self) -> int:
        return round((datetime.fromisoformat(self.end) - datetime.fromisoformat(self.start)).total_seconds())


@dataclass(frozen=True)
class FillUp:
    """A fill-up; the price is in thousandths of a euro per litre."""

    at: str
    volume_ml: int
    price: int
    odometer_m: int

    @property
    def cost_cents(self) -> int:
        return round(self.volume_ml * self.price / 10_000)


@dataclass(frozen=True)
class WeekLog:
    """What happened in one week.

    Attributes:
        trips: the trips, in order.
        fill_ups: the fill-ups, in order.
        odometer_m: odometer at the end of the week, in metres.
    """

    trips: tuple[Trip, ...]
    fill_ups: tuple[FillUp, ...]
    odometer_m: int

    def encode(self) -> dict[str, Any]:
        """The log as a JSON object."""
        return asdict(self)

    @classmethod
    def decode(cls, value: dict[str, Any]) -> Self:
        """Read a log that ``encode`` made.

        Raises:
            KeyError, TypeError: the value has another form.
        """
        trips = tuple(Trip(**trip) for trip in value["trips"])
        return cls(trips, tuple(FillUp(**fill_up) for fill_up in value["fill_ups"]), value["odometer_m"])


@cache
def week_log(vehicle: Vehicle, week: Week) -> WeekLog:
    """The log of a vehicle for one week.

    Raises:
        ValueError: the week is before the first one.
    """
    if week < FIRST:
        raise ValueError(f"logs begin in {FIRST}; there is none for {week}")
    for at, log in _weeks(vehicle):
        if at == week:
            return log
    raise AssertionError("weeks go on for ever")


def _weeks(vehicle: Vehicle) -> Iterator[tuple[Week, WeekLog]]:
    """All weeks of a vehicle, from the first; fuel and odometer continue from week to week."""
    start = Random(vehicle.plate)  # noqa: S311 - invented data, not a secret
    odometer, tank = start.randrange(4_000_000, 90_000_000), vehicle.model.tank_ml // 2
    week = FIRST
    while True:
        random = Random(f"{vehicle.plate} {week}")  # noqa: S311
        trips: list[Trip] = []
        fill_ups: list[FillUp] = []
        for trip in _trips(vehicle, week, random):
            if tank - trip.fuel_ml < RESERVE * vehicle.model.tank_ml:
                volume = round(FULL * vehicle.model.tank_ml) - tank
                price = PRICES[vehicle.model.fuel] + random.randrange(-60, 90)
                before = datetime.fromisoformat(trip.start) - timedelta(minutes=6)
                fill_ups.append(FillUp(before.isoformat(), volume, price, odometer))
                tank += volume
            tank -= trip.fuel_ml
            odometer += trip.distance_m
            trips.append(trip)
        yield week, WeekLog(tuple(trips), tuple(fill_ups), odometer)
        week = week + 1


def _trips(vehicle: Vehicle, week: Week, random: Random) -> Iterator[Trip]:
    model = vehicle.model
    for day in range(WORKDAYS):
        at = datetime.combine(week.monday + timedelta(days=day), time(6, random.randrange(60)))
        for _ in range(random.randint(model.trips_a_day // 2, model.trips_a_day + 2)):
            metres = round(model.usual_km * 1000 * random.lognormvariate(0, 0.5))
            kmh = min(95, 22 + metres / 1000) * random.uniform(0.8, 1.15)
            took = timedelta(seconds=round(metres / kmh * 3.6))
            fuel = round(metres / 1000 * model.ml_per_km * random.uniform(0.85, 1.2))
            yield Trip(at.isoformat(), (at + took).isoformat(), metres, fuel)
            at += took + timedelta(minutes=random.randint(10, 45))
