"""The weekly report of a fleet: the sums of the replies to a scatter, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, Self

from examples.fleet.log import Week, WeekLog
from examples.fleet.roster import Fleet, Vehicle
from fanin.types import GatheredReply


class Misdirected(ValueError):
    """A reply belongs to another fleet, vehicle or week than the report."""


@dataclass(frozen=True)
class Figures:
    """Sums of trips and fill-ups, in metres, seconds, millilitres and cents."""

    trips: int = 0
    distance_m: int = 0
    driving_s: int = 0
    fuel_ml: int = 0
    fill_ups: int = 0
    filled_ml: int = 0
    cost_cents: int = 0

    @classmethod
    def of(cls, log: WeekLog) -> Self:
        """Sum up a week."""
        return cls(
            trips=len(log.trips),
            distance_m=sum(trip.distance_m for trip in log.trips),
            driving_s=sum(trip.duration_s for trip in log.trips),
            fuel_ml=sum(trip.fuel_ml for trip in log.trips),
            fill_ups=len(log.fill_ups),
            filled_ml=sum(fill_up.volume_ml for fill_up in log.fill_ups),
            cost_cents=sum(fill_up.cost_cents for fill_up in log.fill_ups),
        )

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Figures)))

    @property
    def litres_per_100_km(self) -> float | None:
        """Consumption; None if no distance was driven."""
        return self.fuel_ml * 100 / self.distance_m if self.distance_m else None


@dataclass(frozen=True)
class Row:
    """A vehicle that replied.

    Attributes:
        vehicle: the vehicle.
        figures: its sums of the week.
        odometer_m: its odometer at the end of the week, in metres.
        asked: how often it had been asked when it replied.
    """

    vehicle: Vehicle
    figures: Figures
    odometer_m: int
    asked: int


@dataclass(frozen=True)
class Missing:
    """A vehicle that is missing from the sums.

    Attributes:
        vehicle: the vehicle.
        why: the reason, in words.
        asked: how often it was asked; None if it could not be asked.
    """

    vehicle: Vehicle
    why: str
    asked: int | None


@dataclass(frozen=True)
class Report:
    """The report of a fleet for one week.

    Attributes:
        fleet: the fleet.
        week: the week.
        batch_id: batch id of the scatter.
        correlation_id: correlation id of the scatter.
        ready_at: when the scatter ended, ISO 8601.
        recipients: how many vehicles were asked.
        retries: how often missing vehicles were asked again.
        rows: vehicles that replied, sorted by plate.
        missing: vehicles that did not reply, sorted by plate.
    """

    fleet: Fleet
    week: Week
    batch_id: int
    correlation_id: str
    ready_at: str
    recipients: int
    retries: int
    rows: tuple[Row, ...]
    missing: tuple[Missing, ...]

    @property
    def total(self) -> Figures:
        """The sums over all vehicles that replied."""
        return reduce(Figures.__add__, (row.figures for row in self.rows), Figures())

    @classmethod
    def of(
        cls, fleet: Fleet, week: Week, detail: Mapping[str, Any], replies: Iterable[GatheredReply]
    ) -> Self:
        """Build a report.

        Args:
            fleet: the fleet that was asked.
            week: the week that it was asked for.
            detail: detail of the event Gather Ready.
            replies: all replies that count.

        Raises:
            Misdirected: a reply belongs to another report.
        """
        rows = {row.vehicle.plate: row for row in (_row(fleet, week, reply) for reply in replies)}
        silent = dict.fromkeys(detail["missing_recipients"], ("did not answer", 1 + detail["retries"]))
        failures = zip(detail["failed_recipients"], detail["failures"], strict=True)
        failed = {plate: (failure["reason"].removeprefix(f"{plate}: "), None) for plate, failure in failures}
        unknown = ("not in the directory: its lease is over", 0)
        return cls(
            fleet=fleet,
            week=week,
            batch_id=detail["batch_id"],
            correlation_id=detail["correlation_id"],
            ready_at=detail["ended_at"],
            recipients=detail["recipients"],
            retries=detail["retries"],
            rows=tuple(rows[plate] for plate in sorted(rows)),
            missing=tuple(
                Missing(vehicle, *{**silent, **failed}.get(plate, unknown))
                for plate, vehicle in sorted(fleet.vehicles.items())
                if plate not in rows
            ),
        )


def _row(fleet: Fleet, week: Week, reply: GatheredReply) -> Row:
    said = reply.payload
    if (said["fleet"], said["week"], said["vehicle"]) != (fleet.key, str(week), reply.name):
        raise Misdirected(
            f"{reply.name} was asked for {fleet.key} {week}, but answered for"
            f" {said['vehicle']}, {said['fleet']} {said['week']}"
        )
    log = WeekLog.decode(said["log"])
    return Row(fleet.vehicles[reply.name], Figures.of(log), log.odometer_m, said["asked"])
