"""README, docs and examples import fanin as users do: from the package, not from the modules below it."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from fanin import errors

ROOT = Path(__file__).parents[2]
SHOWN = (
    "fanin",
    "fanin.console",
    "fanin.console.serve",
    "fanin.contrib.celery",
    "fanin.contrib.dramatiq",
    "fanin.errors",
    "fanin.local",
    "fanin.spark",
    "fanin.spark.jobs",
    "fanin.testing",
    "fanin.types",
)
MODULES = {
    "fanin": {"names"},
    "fanin.errors": {name for name in vars(errors) if isinstance(getattr(errors, name), type)},
    "fanin.spark.jobs": {"ack", "audit", "fan_out"},  # each is a command, and its functions
}
"""Modules that are shown as a whole."""
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
FILES = [*ROOT.glob("examples/**/*.py")]


def code_of(page: Path) -> str:
    """The imports of a page's code, and of what it says in a line of text."""
    found = re.findall(
        r"(?:^|`)(from fanin[\w.]* import (?:\([^)]*\)|[^`\n]+)|import fanin\b[\w.]*)",
        page.read_text(),
        re.MULTILINE,
    )
    return "\n".join(found)


def imported(code: str) -> set[tuple[str, str]]:
    """What a piece of code imports of fanin: (module, name), with no name for ``import module``."""
    found: set[tuple[str, str]] = set()
    for statement in ast.walk(ast.parse(code)):
        if isinstance(statement, ast.ImportFrom):
            found |= {(statement.module or "", alias.name) for alias in statement.names}
        elif isinstance(statement, ast.Import):
            found |= {(alias.name, "") for alias in statement.names}
    return {(module, name) for module, name in found if module.partition(".")[0] == "fanin"}


def below(code: str) -> set[tuple[str, str]]:
    """What of it users are not shown."""
    return {
        (module, name)
        for module, name in imported(code)
        if module not in SHOWN
        or (
            name
            and name
            not in (MODULES.get(module) or set()) | set(getattr(import_module(module), "__all__", ()))
        )
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_import_what_is_shown(path):
    assert below(code_of(path)) == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_import_what_is_shown(path):
    assert below(path.read_text()) == set()


def test_they_do_import_fanin():
    assert len(set().union(*(imported(code_of(page)) for page in PAGES))) > 10
    assert len(set().union(*(imported(path.read_text()) for path in FILES))) > 20


def test_what_lies_below_is_found():
    code = (
        "from fanin.domain.batch import State\nfrom fanin import Tracker, Nothing, names\nimport fanin.client"
    )
    assert below(code) == {("fanin.domain.batch", "State"), ("fanin", "Nothing"), ("fanin.client", "")}
