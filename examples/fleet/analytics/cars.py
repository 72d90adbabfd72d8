"""Telemetry of connected cars with the columns of the report: made up, but always the same.

    python -m examples.fleet.analytics.cars --output /tmp/cars --weeks 12

The cars are those of the fleet example, whose logs follow from their plates. As in real life some rows come
twice, some lack a value, some have a wrong one, and some of these are sent again, corrected.
"""

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

from examples.fleet.log import Week, week_log
from examples.fleet.roster import ALPINE, HARBOUR

FIRST: Final = Week(2026, 1)
FLEETS: Final = (HARBOUR, ALPINE)
SPOILT: Final = 0.01
"""Share of the rows that get a mistake."""

AMOUNT, MEASURE = 4, 5
"""Places of the columns that get a wrong value: one that may be true, and one that cannot be."""

Row = dict[str, Any]


def telemetry(weeks: int) -> tuple[list[Row], list[Row]]:
    """Trips and fill-ups of all cars, without mistakes.

    Args:
        weeks: how many weeks, from ``FIRST`` on.

    Returns:
        Rows with the columns of ``examples.fleet.analytics.telemetry.TRIPS`` and ``FILL_UPS``.
    """
    trips: list[Row] = []
    fill_ups: list[Row] = []
    for fleet in FLEETS:
        for plate, vehicle in fleet.vehicles.items():
            whose = {"fleet": fleet.key, "vehicle": plate.replace(" ", "-")}
            trip_ids, fill_up_ids = count(1), count(1)
            odometer = 0
            for week in (FIRST + n for n in range(weeks)):
                log = week_log(vehicle, week)
                for trip in log.trips:
                    odometer += trip.distance_m
                    trips.append(
                        {
                            **whose,
                            "trip_id": next(trip_ids),
                            "started_at": f"{trip.start}Z",
                            "distance_m": trip.distance_m,
                            "duration_s": trip.duration_s,
                            "odometer_m": odometer,
                            "sent_at": f"{_later(trip.start, timedelta(seconds=trip.duration_s))}Z",
                        }
                    )
                fill_ups += [
                    {
                        **whose,
                        "fill_up_id": next(fill_up_ids),
                        "filled_at": f"{fill_up.at}Z",
                        "volume_ml": fill_up.volume_ml,
                        "cost": fill_up.cost_cents,
                        "sent_at": f"{_later(fill_up.at)}Z",
                    }
                    for fill_up in log.fill_ups
                ]
    return trips, fill_ups


def _later(at: str | datetime, by: timedelta = timedelta(0)) -> str:
    return (datetime.fromisoformat(str(at)) + by).isoformat()


def spoilt(rows: list[Row], seed: str) -> Iterator[Row]:
    """The same rows with mistakes."""
    random = Random(seed)  # noqa: S311 - made up, not secret
    for row in rows:
        if random.random() >= SPOILT:
            yield row
            continue
        column = random.choice(list(row))
        match random.randrange(4):
            case 0:
                yield row
                yield row
            case 1:
                yield {**row, column: ""}
            case 2:
                yield {**row, list(row)[MEASURE]: -1}
            case _:
                yield {**row, list(row)[AMOUNT]: 1}
                yield {**row, "sent_at": f"{_later(row['sent_at'].removesuffix('Z'), timedelta(days=1))}Z"}


def write(folder: Path, weeks: int) -> Mapping[str, int]:
    """Write ``trips.csv`` and ``fill_ups.csv``.

    Returns:
        Number of rows of each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for name, rows in zip(("trips", "fill_ups"), telemetry(weeks), strict=True):
        arrived = list(spoilt(rows, name))
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(arrived)
        written[name] = len(arrived)
    return written


def main() -> int:
    """Write the files, and say how many rows they have."""
    parser = argparse.ArgumentParser(description="Make up telemetry of connected cars.")
    parser.add_argument("--output", type=Path, required=True, help="folder for trips.csv and fill_ups.csv")
    parser.add_argument("--weeks", type=int, default=12, help=f"how many weeks, from {FIRST} on (12)")
    options = parser.parse_args()
    for name, rows in write(options.output, options.weeks).items():
        print(f"{options.output / name}.csv: {rows:,} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
