"""The page of the fleet report: one file that loads nothing, escapes everything and is the same each time."""

import os
import re
import subprocess
import sys
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pygal
import pyspark
import pytest

import fanin
from examples.fleet.analytics.asking import AskedFleet
from examples.fleet.analytics.contents import Report
from examples.fleet.analytics.html_page import render_page
from fanin.spark.emr import Script

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


def test_names_of_fleets_do_no_harm(report):
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


ROOT = Path(__file__).parents[3]


def test_it_starts_and_finds_its_page_in_the_zip(tmp_path):
    # Given the job, packed for EMR
    script = Script.of(ROOT / "examples" / "fleet" / "analytics" / "job.py", [ROOT / "examples"])
    (tmp_path / "job.py").write_bytes(script.entry)
    (tmp_path / "files.zip").write_bytes(script.files or b"")
    packages = {str(Path(one.__file__).parents[1]) for one in (fanin, pygal, pyspark)}
    code = (
        "import job; from examples.fleet.analytics import html_page as page; print(page._text('report.html'))"
    )
    # When it starts where there is no checkout
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "files.zip"), *packages])},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    # Then it has all that it imports, and its page
    assert ran.stderr == ""
    assert '<meta name="generator" content="fanin">' in ran.stdout
