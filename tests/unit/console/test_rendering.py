import re
import shlex
from enum import StrEnum
from html import unescape

import pytest
import typer.main

from fanin.cli.main import app
from fanin.console.options import Options
from fanin.console.pages.batches import BATCHES
from fanin.console.pages.patterns import FRAMES, SCATTERS
from fanin.console.rendering import HERE, Templates, compact, day, number, percent, when
from fanin.domain.batch import State
from fanin.domain.diagnosis import Severity
from fanin.domain.picture import ItemState
from fanin.domain.targets import TargetState

NOON = 1_795_435_200_000


@pytest.fixture
def templates() -> Templates:
    return Templates(Options(root="/console"), lambda: NOON)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "\u2013"),
        (0, 10, "0 %"),
        (10, 10, "100 %"),
        (1, 10**9, "< 0.1 %"),
        (10**9 - 1, 10**9, "> 99.9 %"),
        (1, 3, "33.3 %"),
    ],
)
def test_a_share_is_never_all_or_nothing_unless_it_is(part, whole, text):
    assert percent(part, whole) == text


def test_figures_are_grouped():
    assert (number(1_234_567), number(None)) == ("1,234,567", "\u2013")
    assert number(2**80 - 1) == "1,208,925,819,614,629,174,706,175"  # a total may be so large
    assert number(12.6) == "13"
    assert [compact(value) for value in (7, 1_250, 2e6, 1.07e9)] == ["7", "1.25 k", "2 M", "1.07 G"]


def test_a_time_is_an_element_with_its_date():
    assert day(NOON) == "2026-11-23 12:00:00 UTC"
    assert when(NOON) == '<time datetime="2026-11-23T12:00:00Z">2026-11-23 12:00:00 UTC</time>'
    assert when(None) == "\u2013"


def test_addresses_are_quoted_segment_by_segment(templates):
    assert templates.url() == "/console"
    assert templates.url("buffers", "a/b?c#d%\u00e9") == "/console/buffers/a%2Fb%3Fc%23d%25%C3%A9"
    assert (
        templates.url("batches", search="a=b&c", cursor=None, kind="") == "/console/batches?search=a%3Db%26c"
    )


def test_whatever_is_not_markup_is_escaped(templates):
    html = templates.macro("parts.html", "count", 5, False, '"><script>') + templates.macro(
        "parts.html", "nothing", "<img onerror=alert(1)>"
    )
    assert "<script>" not in html
    assert "<img" not in html


# The commands that pages name exist, with these arguments.


TEXTS = [path.read_text() for path in sorted((HERE / "templates").glob("*.html"))]
VALUES = {"LIMIT": "5", "ENVELOPES": "5"}
"""Of words that stand for numbers."""


def named() -> list[str]:
    """The commands that templates and lists name, with a value for each expression."""
    found = {unescape(text) for page in TEXTS for text in re.findall(r"<code>(fanin .*?)</code>", page)}
    places = {place.command for place in (BATCHES, SCATTERS, FRAMES)}
    return sorted(re.sub(r"{{.*?}}", "7", text) for text in found | places)


def test_pages_name_commands():
    assert "fanin buffer define NAME LIMIT" in named()


@pytest.mark.parametrize("text", named())
def test_the_command_can_be_called_so(text):
    _, *words = (VALUES.get(word, word) for word in shlex.split(text))
    command = typer.main.get_command(app)
    context = command.make_context("fanin", list(words))
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
    assert not context.args


# The style sheet against the templates: nothing in it is dead, and nothing in them is without it.


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


def test_every_class_of_the_style_sheet_is_used():
    words = {*re.findall(r"[\w-]+", MADE), *(str(member) for kind in ENUMS for member in kind)}
    assert STYLED - words == set()


def test_every_id_of_the_style_sheet_is_used():
    ids = {name for selector in SELECTORS for name in re.findall(r"#([a-z][\w-]*)", selector)}
    assert {name for name in ids if f'id="{name}"' not in TEMPLATES} == set()


def test_every_class_of_the_templates_has_a_style():
    # Given the classes that templates write, without those that are computed
    attributes = re.findall(r'class="((?:\{\{.*?\}\}|\{%.*?%\}|[^"])*)"', TEMPLATES)
    used = {name for text in attributes for name in re.sub(r"\{[{%].*?[%}]\}", " ", text).split()}
    assert len(used) > 50
    assert used - STYLED == set()


def test_where_the_system_gives_the_colours_pictures_keep_theirs():
    blocks = re.findall(r"@media \(forced-colors: active\) \{((?:[^{}]*\{[^{}]*\})+)", STYLE)
    assert len(blocks) > 1
    assert {rule.strip() for block in blocks for rule in re.findall(r"\{([^{}]*)\}", block)} == {
        "forced-color-adjust: none;"
    }
