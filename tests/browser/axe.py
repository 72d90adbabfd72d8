"""What axe finds on a page: it checks what a program can check of WCAG 2.2, levels A and AA.

axe is under the Mozilla Public License 2.0, so it is fetched and not part of this repository.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

from tests.browser.chromium import HOME
from tests.npm.packages import Package

PACKAGE: Final = Package(
    "axe-core",
    "4.14.1",
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
)
TAGS: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa")

COLOURS: Final = ("color-contrast", "link-in-text-block")
"""The rules that the colour scheme decides."""

_RUN: Final = """([type, values]) => axe.run(document, {
  runOnly: {type, values},
  rules: {"target-size": {enabled: type === "tag"}},
  resultTypes: ["violations"],
})"""


def fetch() -> Path:
    """The folder of axe, fetched unless it is there already."""
    return PACKAGE.unpacked(HOME)


def accessible(page: Page, *rules: str) -> None:
    """Assert that axe finds nothing on a page; the message has each finding and how to mend it.

    The page's Content-Security-Policy does not hold for scripts that come through the debugger.

    Args:
        page: a page that has JavaScript.
        rules: of axe; by default all that have one of ``TAGS``.

    Raises:
        ValueError: the page has no JavaScript, without which axe would never end.
    """
    if page.evaluate("matchMedia('(scripting: none)').matches"):
        raise ValueError("axe needs JavaScript; check the page in a test that has it")
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    found = page.evaluate(_RUN, ["rule", rules] if rules else ["tag", TAGS])["violations"]
    assert not found, f"axe on {page.url}, {page.viewport_size}:\n" + "\n".join(map(_described, found))


@cache
def _source() -> str:
    return (fetch() / "axe.min.js").read_text()


def _described(violation: dict[str, Any]) -> str:
    criteria = ", ".join(tag for tag in violation["tags"] if tag.startswith("wcag"))
    lines = [f"{violation['id']} ({violation['impact']}; {criteria}): {violation['help']}"]
    for node in violation["nodes"]:
        summary = node["failureSummary"].replace("\n", "\n    ")
        lines += [f"  {' '.join(map(str, node['target']))}: {node['html']}", f"    {summary}"]
    return "\n".join([*lines, f"  {violation['helpUrl']}"])
