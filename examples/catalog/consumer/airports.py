"""Checks a row of the catalog, and computes the nearest hub."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from math import asin, cos, radians, sin, sqrt
from typing import Any, Final

EARTH_KM: Final = 6371.0088  # mean radius, IUGG
HUBS: Final = {
    "ATL": (33.6367, -84.4279),
    "DXB": (25.2528, 55.3644),
    "GRU": (-23.4356, -46.4731),
    "HND": (35.5523, 139.7800),
    "JNB": (-26.1337, 28.2423),
    "LAX": (33.9425, -118.4081),
    "LHR": (51.4706, -0.4619),
    "SIN": (1.3502, 103.9940),
    "SYD": (-33.9461, 151.1770),
}

_NEUTRAL: Final = {"iata": "", "country": "ZZ", "lat": "0", "lon": "0", "elevation": "0"}
"""A valid value for each column; its item has none of what is computed from it."""
_PLACE: Final = {"latitude", "longitude", "hub", "hub_km"}
_DEPENDENT: Final = {"lat": _PLACE, "lon": _PLACE, "elevation": {"elevation_ft"}}


class Malformed(ValueError):
    """A row that fails each time, however often it is tried; the message says which column is wrong."""


def parse(row: Mapping[str, Any]) -> dict[str, Any]:
    """Check a row, and add the nearest hub with its distance.

    Args:
        row: the columns as text, as in the file of the catalog.

    Returns:
        The item for the table, with ``icao`` as its key; distance in km, elevation in feet.

    Raises:
        Malformed: a column is missing or invalid.
    """
    latitude, longitude = _number(row, "lat", 90), _number(row, "lon", 180)
    hub, distance = min(
        ((name, distance_km(float(latitude), float(longitude), *place)) for name, place in HUBS.items()),
        key=lambda found: found[1],
    )
    return {
        "icao": _code(row, "icao", r"[A-Z0-9_][A-Z0-9]{3}|row-[0-9]+"),
        "iata": _code(row, "iata", r"|[A-Z0-9]{3}"),
        "name": row.get("name", ""),
        "country": _code(row, "country", r"[A-Z]{2}"),
        "latitude": latitude,
        "longitude": longitude,
        "elevation_ft": _number(row, "elevation", 30_000),
        "hub": hub,
        "hub_km": round(distance),
    }


def parse_what_is_there(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Like ``parse``, but a column that is missing or invalid is left out of the item.

    Args:
        row: as for ``parse``.
        name: the key of an item whose row has no valid ``icao``.
    """
    usable = dict(row)
    left_out: set[str] = set()
    while True:
        try:
            item = parse(usable)
        except Malformed as error:
            column = str(error).split(maxsplit=1)[0]
            usable[column] = name if column == "icao" else _NEUTRAL[column]
            left_out |= _DEPENDENT.get(column, {column})
        else:
            kept = {key: value for key, value in item.items() if key not in left_out}
            return kept | {"icao": item["icao"]}


def distance_km(latitude: float, longitude: float, to_latitude: float, to_longitude: float) -> float:
    """Great-circle distance in km between two points, given in degrees (haversine formula)."""
    phi, to_phi = radians(latitude), radians(to_latitude)
    half_chord = (
        sin((to_phi - phi) / 2) ** 2
        + cos(phi) * cos(to_phi) * sin(radians(to_longitude - longitude) / 2) ** 2
    )
    return 2 * EARTH_KM * asin(sqrt(min(1.0, half_chord)))


def _code(row: Mapping[str, Any], column: str, pattern: str) -> str:
    value = str(row.get(column, ""))
    if not re.fullmatch(pattern, value):
        raise Malformed(f"{column} {value!r} is not a code of this kind")
    return value


def _number(row: Mapping[str, Any], column: str, most: int) -> Decimal:
    text = str(row.get(column, ""))
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise Malformed(f"{column} {text!r} is not a number") from None
    if not value.is_finite() or abs(value) > most:
        raise Malformed(f"{column} {text!r} is not from -{most} to {most}")
    return value
