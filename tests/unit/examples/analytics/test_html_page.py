"""The page of the fleet report: one file that loads nothing, escapes everything and is the same each time."""

import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from html.parser import HTMLParser

import pytest

from examples.fleet.analytics.asking import AskedFleet
from examples.fleet.analytics.contents import FLEETS, Odometers, Ranked, Report
from examples.fleet.analytics.html_page import render_page

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
        other_weeks=[{**row("", 5, utilisation=0.02), "week": week} for week in WEEKS],
    )

    # When the page is made
    made = render_page(many)

    # Then seven have a colour, and the others are drawn as one, their ratios too
    assert "<title>f6, 2024-W10, 1.23</title>" in made
    assert "<title>f7, 2024-W10, 1.23</title>" not in made
    assert "<title>others, 2024-W10, 6.17</title>" in made
    assert "<title>others, 2024-W10, 2 %</title>" in made
    assert made.count("</i>others</li>") == 4
    assert f"All, including {FLEETS} smaller fleets" in made


def text_of(report: Report) -> str:
    """The text of the page's body, with a space wherever a tag is."""
    body = re.sub("<style.*?</style>", "", render_page(report).partition("<body>")[2], flags=re.DOTALL)
    return " ".join(Read(body.replace("<", " <")).text.split())


def test_each_figure_stands_beside_that_of_the_week_before(report: Report) -> None:
    # Given a report with a period before, in which a fleet drove half as far, and another did not exist
    half = {**report.total, "distance_m": 3_703_701, "utilisation": 0.0245}
    text = text_of(
        replace(
            report,
            weeks_before=[WEEKS[0] - timedelta(weeks=1)],
            total_before=half,
            fleets_before={"north": row("north", 3, distance_m=1_851_851)},
        )
    )

    # When the page is made, then it has the figures of before, and how they changed
    assert "before: 2024-W09" in text
    assert "before: 3,704 km, +100.0 %" in text
    assert "before: 2.5 %, +1.0 points" in text
    assert "1,852, +100.0 %" in text


def ranked(rank: int) -> dict:
    return {
        "rank": rank,
        "fleet": "north",
        "vehicle": f"v{rank}",
        "trips": 3,
        "distance_m": 5_000,
        "duration_s": 600,
        "week_share": 0.001,
        "distance_share": 0.25,
        **dict.fromkeys(("trips_before", "distance_m_before", "duration_s_before")),
    }


def test_the_ends_of_the_ranking_are_shown(report: Report) -> None:
    # Given the ends of a long ranking, when the page is made, then it has both, and says how long it is
    text = text_of(replace(report, ranked=Ranked([ranked(1), ranked(2)], [ranked(1234)], 1234)))
    assert "the first 2 and the last 1 of 1,234 vehicles with a trip" in text
    assert "1,234 v1234 north 5 25.0 % 3 0.1 %" in text


def test_odometers_that_do_not_add_up_are_named(report: Report) -> None:
    # Given an odometer that ran backwards, and another finding for which there is no space
    at = datetime(2024, 3, 5, 8, 30)  # noqa: DTZ001 - as Spark gives it
    finding = {
        "fleet": "north",
        "vehicle": "v1",
        "problem": "backwards",
        "from_trip": "6",
        "from_at": at,
        "from_m": 81_500,
        "to_trip": "7",
        "to_at": at,
        "to_m": 80_000,
        "driven_m": 12_000,
    }
    text = text_of(replace(report, odometers=Odometers(9, {"backwards": 1, "disagrees": 1}, [finding])))

    # When the page is made, then it names the vehicle, the readings and the tolerance
    assert "2 pairs of readings, of 9 compared" in text
    assert "north v1 2024-03-05 08:30 trip 6 81.5 2024-03-05 08:30 trip 7 80.0 12.0 runs backwards" in text
    assert "more than 2 km or 5 %" in text
    assert "and 1 more, in the dataset odometer" in text

    # And a report in which all agree says that; one without odometers says nothing
    assert "9 odometer readings agree with the trips" in text_of(
        replace(report, odometers=Odometers(9, {}, []))
    )
    assert "dometer" not in text_of(report)
