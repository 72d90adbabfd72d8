"""What the package shows: every name is declared alike in three places, and needs no extra."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import fanin
import fanin.spark
from fanin import errors

EXTRAS = (
    "aws_lambda_powertools",
    "fastjsonschema",
    "jinja2",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
)
EXTRAS += ("py4j", "rich", "typer")

IMPORT_ALL = f"""\
import sys
for name in {EXTRAS}:
    sys.modules[name] = None  # what Python makes of a package that is not installed
import fanin
for name in fanin.__all__:
    getattr(fanin, name)
print(len(fanin.__all__))
"""


def imported_for_types(module: ModuleType) -> dict[str, str]:
    """What a module imports under ``if TYPE_CHECKING``: name → module."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    return {
        alias.name: str(statement.module)
        for branch in tree.body
        if isinstance(branch, ast.If)
        for statement in branch.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


@pytest.mark.parametrize("module", [fanin, fanin.spark], ids=lambda module: module.__name__)
def test_the_lists_of_names_agree(module):
    assert module.__all__ == sorted(module._HOMES)
    assert imported_for_types(module) == module._HOMES
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("name", fanin.__all__)
def test_a_name_is_what_its_home_has(name):
    assert getattr(fanin, name) is vars(import_module(fanin._HOMES[name]))[name]


def test_all_names_import_without_any_extra():
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{len(fanin.__all__)}\n"), done.stderr


def test_every_error_is_shown():
    raised = {
        name
        for name, what in vars(errors).items()
        if isinstance(what, type) and issubclass(what, errors.FaninError)
    }
    assert len(raised) > 20
    assert raised <= set(fanin.__all__)


@pytest.mark.parametrize("module", [fanin, fanin.spark], ids=lambda module: module.__name__)
def test_other_names_are_refused(module):
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'Nothing'"):
        _ = module.Nothing


def test_importing_the_package_imports_nothing_of_it():
    code = "import sys, fanin; print([m for m in sys.modules if m.startswith('fanin.') or m == 'boto3'])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"  # noqa: S603


def test_a_failed_send_says_why_for_each_item():
    assert fanin.SendFailed("x", items={"1:g:0": "why"}).items == {"1:g:0": "why"}
