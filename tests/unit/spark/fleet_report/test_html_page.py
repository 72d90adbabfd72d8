"""The page of the fleet report: one file that loads nothing, escapes everything and is the same each time."""

import re
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser

import pytest

from fanin.spark.fleet_report.asking import AskedFleet
from fanin.spark.fleet_report.html_page import FLEETS, Report, render_page, short

WEEKS = [date(2024, 3, 4) + timedelta(weeks=n) for n in range(3)]
EVIL = '</script><script>alert("x")</script>&'


def row(name: str, weeks: int = 1, **more) -> dict:
    return {
        "fleet": name,
        "vehicles": 4,
        "active": 3,
        "trips": 10 * weeks,
        "distance_m": 1_234_567 * weeks,
        "duration_s": 36_000,
        "fill_ups": 2,
        "volume_ml": 80_000,
        "cost": 123_456,
        "fuelled_m": 1_000_000,
        "utilisation": 0.0345,
        "l_per_100km": 8.0,
        "cost_per_100km": 12_345.6,
        **more,
    }


@pytest.fixture
def report() -> Report:
    names = ["north", EVIL]
    return Report(
        title=f"Fleets {EVIL}",
        weeks=WEEKS,
        fleets=[row(name, 3) for name in names],
        total=row("", 6),
        fleet_count=2,
        fleet_weeks=[{**row(name), "week": week} for name in names for week in WEEKS[1:]],
        missing={EVIL: {"silent": 1, "idle": 2}},
        missing_count={"silent": 1, "idle": 2},
        listed=[{"fleet": EVIL, "vehicle": EVIL, "why": "failed", "detail": EVIL, "last_week": None}],
        asked=[AskedFleet("north", 1, 5, 4, 0, ready=True)],
        rejects=[{"reason": "null", "detail": "fleet is null", "count": 1234}],
        rows=98_765,
        outside=12,
        currency="EUR",
    )


class Read(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def test_names_of_fleets_do_no_harm(report: Report) -> None:
    # Given a fleet whose name is a script, when the page is made
    made = render_page(report)
    read = Read(made)

    # Then there is no script in it, and nothing to load
    assert "script" not in {tag for tag, _ in read.tags}
    loaded = [
        value
        for _, attrs in read.tags
        for name, value in attrs.items()
        if name in {"src", "href", "xlink:href"}
    ]
    assert not loaded
    assert not re.search(r"url\(|@import", made)

    # And the name is there, as text
    assert EVIL in read.text


def test_figures_have_units_people_know(report: Report) -> None:
    # Given metres, seconds, millilitres and hundredths, when the page is made
    text = " ".join(Read(render_page(report)).text.split())

    # Then it shows kilometres, hours, litres and euros
    for shown in (
        "7,407 km",
        "10 h",
        "3.5 %",
        "8.0 l",
        "1,234.56",
        "123.46",
        "4 of 5",
        "98,765 rows came in; 12 of them",
        "2024-W10 to 2024-W12",
    ):
        assert shown in text


def test_the_same_report_is_the_same_page(report: Report) -> None:
    # Given a report, when its page is made twice, then a re-run leaves the same file, byte by byte
    assert render_page(report) == render_page(replace(report))
    assert "2026" not in render_page(report)  # the day it was drawn


def test_charts_have_a_mark_for_each_week_with_data(report: Report) -> None:
    # Given two fleets with data in two of three weeks, when the page is made
    made = render_page(report)

    # Then the marks say what they stand for, and a line has none for the first week
    marks = re.findall(r"<title>north, ([^<]*)</title>", made)
    assert "2024-W11, 1.23" in marks
    assert "2024-W11, 3.45 %" in marks
    assert not [mark for mark in marks if mark.startswith("2024-W10") and mark.endswith("%")]


def test_a_page_without_anything_is_a_page(report: Report) -> None:
    # Given a report of nothing
    nothing = dict.fromkeys(report.total, 0) | {
        "utilisation": None,
        "l_per_100km": None,
        "cost_per_100km": None,
    }
    empty = replace(
        report,
        title="Empty",
        weeks=[],
        fleets=[],
        total=nothing,
        fleet_count=0,
        fleet_weeks=[],
        missing={},
        missing_count={},
        listed=[],
        asked=[],
        rejects=[],
        rows=0,
        outside=0,
    )

    # When the page is made, then it says so, without a chart
    made = render_page(empty)
    assert "<svg" not in made
    assert "No week with a trip" in made


def test_more_fleets_than_colours_are_drawn_together(report: Report) -> None:
    # Given twelve fleets, and more that the page has no rows for
    names = [f"f{n}" for n in range(12)]
    many = replace(
        report,
        fleets=[row(name, 3) for name in names],
        fleet_count=12 + FLEETS,
        fleet_weeks=[{**row(name), "week": week} for name in names for week in WEEKS],
    )

    # When the page is made
    made = render_page(many)

    # Then seven have a colour, and the other five are added up
    assert "<title>f6, 2024-W10, 1.23</title>" in made
    assert "<title>f7, 2024-W10, 1.23</title>" not in made
    assert "<title>all others, 2024-W10, 6.17</title>" in made
    assert f"All, including {FLEETS} smaller fleets" in made


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.25, "0.25"), (8.0, "8"), (12345.6, "12,346"), (99.95, "100")]
)
def test_axes_show_short_numbers(value: float, text: str) -> None:
    # Given a value, when an axis shows it, then without an exponent
    assert short(value) == text
