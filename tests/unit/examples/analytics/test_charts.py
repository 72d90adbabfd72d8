"""Charts: SVG that needs nothing else, is the same each time, and shows its values without scripts."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from examples.fleet.analytics.charts import COLOURS, HALF, Chart, Series, bars, horizontal_bars, lines

WEEKS = [f"2024-W{n:02}" for n in range(10, 22)]


def chart(series: int = 2, labels: list[str] = WEEKS) -> Chart:
    made = [Series(f"fleet {n} & co", [n + at for at in range(len(labels))]) for n in range(series)]
    return Chart("distance", labels, made, lambda value: f"{value:g} km")


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314  our own


@pytest.mark.parametrize("draw", [bars, lines, horizontal_bars])
class TestEveryChart:
    def test_is_whole_svg_without_scripts_or_links(self, draw):
        svg = draw(chart())
        root = parsed(svg)
        assert root.tag.endswith("svg")
        assert not [one for one in root.iter() if callable(one.tag) or one.tag.endswith("script")]
        assert "href" not in svg
        assert "Pygal" not in svg

    def test_shows_values_with_their_series_and_unit(self, draw):
        titles = {one.text for one in parsed(draw(chart())).iter() if one.tag.endswith("title")}
        assert any("fleet 1 & co" in text and "3 km" in text for text in titles)

    def test_takes_its_colours_from_the_page(self, draw):
        svg = draw(chart(series=COLOURS + 1))
        assert all(f"var(--series-{n})" in svg for n in range(COLOURS))
        assert f"var(--series-{COLOURS})" not in svg

    def test_may_lack_values(self, draw):
        gaps = Chart("gaps", WEEKS[:3], [Series("north", [1, None, 2])], "{:g}".format)
        assert draw(gaps).startswith("<svg")


def test_a_chart_has_the_size_it_is_given():
    assert parsed(bars(chart())).attrib["viewBox"] == f"0 0 {HALF[0]} {HALF[1]}"
