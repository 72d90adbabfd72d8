"""The example's own rules: what a row must be, what is spoilt and repeated, what counts as a write."""

from decimal import Decimal

import pytest

from examples.catalog.consumer.airports import Malformed, parse, parse_what_is_there
from examples.catalog.meter import rows_written
from examples.catalog.rows import SPOILT_EVERY, Catalog, comes_again

HEATHROW = {
    "icao": "EGLL",
    "iata": "LHR",
    "name": "London Heathrow Airport",
    "country": "GB",
    "elevation": "83.0",
    "lat": "51.4706",
    "lon": "-0.46194",
}


def test_a_row_gets_its_nearest_hub():
    airport = parse(HEATHROW | {"icao": "EDDF", "lat": "50.0264", "lon": "8.54313"})
    assert airport["hub"] == "LHR"
    assert airport["hub_km"] == pytest.approx(655, rel=0.005)  # by the ellipsoid
    assert airport["latitude"] == Decimal("50.0264")


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("icao", "?", "icao '?' is not a code"),
        ("icao", "EGLLX", "icao 'EGLLX' is not a code"),
        ("iata", "L", "iata 'L' is not a code"),
        ("country", "", "country '' is not a code"),
        ("lat", "912.4", "lat '912.4' is not from -90 to 90"),
        ("lon", "NaN", "lon 'NaN' is not from -180 to 180"),
        ("elevation", "high", "elevation 'high' is not a number"),
    ],
)
def test_a_malformed_row_says_which_column(column, value, said):
    with pytest.raises(Malformed, match=f"^{said.replace('?', '[?]')}"):
        parse(HEATHROW | {column: value})


@pytest.mark.parametrize(
    ("column", "value", "left_out"),
    [
        ("icao", "?", set()),
        ("iata", "L", {"iata"}),
        ("lat", "912.4", {"latitude", "longitude", "hub", "hub_km"}),
        ("elevation", "high", {"elevation_ft"}),
    ],
)
def test_what_is_malformed_can_be_left_out(column, value, left_out):
    good = parse(HEATHROW)
    key = "row-7" if column == "icao" else "EGLL"

    airport = parse_what_is_there(HEATHROW | {column: value}, "row-7")

    assert airport == {name: good[name] for name in good if name not in left_out} | {"icao": key}


def test_every_real_row_is_good_and_every_spoilt_one_is_not():
    # Given the whole catalog
    catalog = Catalog.load(None)
    # When all its rows are parsed
    refused = []
    for number, row in enumerate(catalog.rows):
        try:
            parse(row)
        except Malformed:
            refused.append(number)
            assert parse_what_is_there(row, f"row-{number}")["name"]
    # Then just the spoilt ones are refused, and none of them is sent twice
    assert refused == list(range(0, len(catalog.rows), SPOILT_EVERY))
    assert len(refused) == catalog.spoilt
    assert not any(comes_again(number) for number in refused)
    assert sum(comes_again(number) for number in range(len(catalog.rows))) == catalog.again


@pytest.mark.parametrize(
    ("operation", "request_", "rows"),
    [
        ("UpdateItem", {"TableName": "words"}, ["words"]),
        ("GetItem", {"TableName": "words"}, []),
        ("Query", {"TableName": "batches"}, []),
        ("BatchWriteItem", {"RequestItems": {"parts": [{}, {}]}}, ["parts", "parts"]),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": "parts"}}, {"Update": {"TableName": "batches"}}]},
            ["parts", "batches"],
        ),
    ],
)
def test_the_meter_counts_every_row_written(operation, request_, rows):
    assert list(rows_written(operation, request_)) == rows
