"""The style sheet against the templates: nothing in it is dead, and nothing in them is without it."""

from __future__ import annotations

import re
from enum import StrEnum

from fanin.console.rendering import HERE
from fanin.domain.batch import State
from fanin.domain.diagnosis import Severity
from fanin.domain.picture import ItemState
from fanin.domain.targets import TargetState

STYLE = re.sub(r"/\*.*?\*/", "", (HERE / "static" / "style.css").read_text(), flags=re.DOTALL)
SELECTORS = [
    selector
    for selector in re.findall(r"([^{}]+)\{", STYLE)
    if not selector.strip().startswith(("@", ":root"))
]
STYLED = {name for selector in SELECTORS for name in re.findall(r"\.([a-z][\w-]*)", selector)}
TEMPLATES = "".join(path.read_text() for path in sorted((HERE / "templates").glob("*.html")))
MADE = TEMPLATES + "".join(path.read_text() for path in sorted((HERE / "pages").glob("*.py")))
"""Where elements are written."""
ENUMS: tuple[type[StrEnum], ...] = (State, TargetState, ItemState, Severity)
"""Their members are classes of what has them."""


def test_every_class_of_the_style_sheet_is_used() -> None:
    words = {*re.findall(r"[\w-]+", MADE), *(str(member) for kind in ENUMS for member in kind)}
    assert STYLED - words == set()


def test_every_id_of_the_style_sheet_is_used() -> None:
    ids = {name for selector in SELECTORS for name in re.findall(r"#([a-z][\w-]*)", selector)}
    assert {name for name in ids if f'id="{name}"' not in TEMPLATES} == set()


def test_every_class_of_the_templates_has_a_style() -> None:
    # Given the classes that templates write, without those that are computed
    attributes = re.findall(r'class="((?:\{\{.*?\}\}|\{%.*?%\}|[^"])*)"', TEMPLATES)
    used = {name for text in attributes for name in re.sub(r"\{[{%].*?[%}]\}", " ", text).split()}
    assert len(used) > 50
    # Then each has a rule
    assert used - STYLED == set()


def test_where_the_system_gives_the_colours_pictures_keep_theirs() -> None:
    blocks = re.findall(r"@media \(forced-colors: active\) \{((?:[^{}]*\{[^{}]*\})+)", STYLE)
    assert len(blocks) > 1
    assert {rule.strip() for block in blocks for rule in re.findall(r"\{([^{}]*)\}", block)} == {
        "forced-color-adjust: none;"
    }
