"""Charts as SVG inside a page: no scripts, nothing to load, colours from the page's own style.

pygal draws them. It is pure Python without dependencies that need compiling, so a job's archive stays small;
matplotlib would add thirty megabytes, and the colour of its text could not follow the page.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import Element, SubElement

import pygal
import pygal.style

COLOURS: Final = 8
"""Most series that people can tell apart in a chart; the page's style names as many colours."""
SIZE: Final = (900, 320)
"""Width and height of a chart as wide as the page; charts in pairs are ``HALF``."""
HALF: Final = (560, 300)
_LABEL: Final = 95
"""How wide the label of a week is, with some space around it."""


class Series(NamedTuple):
    """A line, or the bars of one colour.

    Attributes:
        name: in the legend.
        values: one for each label; None where a value is missing.
    """

    name: str
    values: Sequence[float | None]


class Chart(NamedTuple):
    """What to draw.

    Attributes:
        id_: of the chart in its page.
        labels: of the weeks, or of the bars.
        series: from the bottom up.
        shown: gives a value as text, with its unit.
        size: width and height.
    """

    id_: str
    labels: Sequence[str]
    series: Sequence[Series]
    shown: Callable[[float], str]
    size: tuple[int, int] = HALF

    @property
    def legend(self) -> list[tuple[int, str]]:
        """Colour and name of each series. The page writes them as text, which breaks where it has to."""
        return [(n % COLOURS, one.name) for n, one in enumerate(self.series)]


def bars(chart: Chart) -> str:
    """Draw stacked bars."""
    return _draw("StackedBar", chart, {"rounded_bars": 1, "spacing": 8})


def lines(chart: Chart) -> str:
    """Draw lines above zero."""
    return _draw(
        "Line", chart, {"dots_size": 2 if len(chart.labels) > 1 else 5, "stroke_style": {"width": 2}}
    )


def horizontal_bars(chart: Chart) -> str:
    """Draw stacked horizontal bars, the first label on top, as high as they need to be."""
    upward = [Series(one.name, one.values[::-1]) for one in chart.series]
    turned = chart._replace(
        labels=chart.labels[::-1], series=upward, size=(chart.size[0], 50 + 26 * len(chart.labels))
    )
    return _draw("HorizontalStackedBar", turned, {"rounded_bars": 1, "spacing": 6}, every_label=True)


def _draw(kind: str, what: Chart, more: Mapping[str, Any], *, every_label: bool = False) -> str:
    labels, series = what.labels, what.series
    width, height = what.size
    every = 1 if every_label else max(1, -(-len(labels) * _LABEL // width))
    chart = getattr(pygal, kind)(
        **{
            "style": _style(len(series)),
            "width": width,
            "height": height,
            "js": (),
            "disable_xml_declaration": True,
            "show_minor_x_labels": every == 1,
            "show_legend": False,
            "truncate_label": -1,
            "allow_interruptions": True,
            "show_x_guides": False,
            "min_scale": 3,
            "max_scale": 6,
            "include_x_axis": True,
            "margin": 8,
            "value_formatter": lambda value: "" if value is None else what.shown(value),
            **more,
        }
    )
    chart.uuid = what.id_  # pygal's own is random, and would change the page with each run
    chart.x_labels = list(labels)
    if every > 1:
        chart.x_labels_major = list(labels[::every])
    for one in series:
        chart.add(one.name, [{"value": value, "label": one.name} for value in one.values])
    chart.add_xml_filter(_plain)
    drawn: str = chart.render(is_unicode=True)
    return drawn


def _style(series: int) -> Any:
    colours = tuple(f"var(--series-{n % COLOURS})" for n in range(max(1, series)))
    return pygal.style.Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--muted)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--line)",
        guide_stroke_color="var(--line)",
        major_guide_stroke_color="var(--line)",
        guide_stroke_dasharray="none",
        major_guide_stroke_dasharray="none",
        colors=colours,
        opacity="1",
        opacity_hover=".8",
        transition="none",
        font_family="inherit",
        label_font_size=12,
        major_label_font_size=12,
        no_data_font_size=14,
    )


def _plain(root: Element) -> Element:
    """Drop the date and what only scripts need; show values as titles, which need no scripts."""
    for parent in root.iter():
        for child in list(parent):
            if callable(child.tag) or child.tag in {
                "script",
                "title",
            }:  # a callable tag is a comment; the title is "Pygal"
                parent.remove(child)
    for parent in root.iter():
        said = {child.get("class"): child.text or "" for child in parent if child.tag == "desc"}
        for child in [child for child in parent if child.tag == "desc"]:
            parent.remove(child)
        if "value" in said:
            title = SubElement(parent, "title")
            title.text = ", ".join(said[part] for part in ("label", "x_label", "value") if said.get(part))
    return root
