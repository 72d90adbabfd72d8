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


def test_horizontal_bars_are_as_high_as_they_need_to_be():
    heights = [
        int(parsed(horizontal_bars(chart(labels=WEEKS[:count]))).attrib["viewBox"].split()[3])
        for count in (1, 4, 12)
    ]
    assert heights == [50 + 26 * count for count in (1, 4, 12)]


def test_the_first_label_of_horizontal_bars_is_on_top():
    svg = horizontal_bars(Chart("missing", ["first", "last"], [Series("silent", [1, 2])], "{:g}".format))
    places = {one.text: float(one.attrib["y"]) for one in parsed(svg).iter() if one.text in {"first", "last"}}
    assert places["first"] < places["last"]
