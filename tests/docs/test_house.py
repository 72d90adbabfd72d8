"""The house: each module's tests lie where the module does, under its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "fanin" / "python" / "fanin"
HOMES = (ROOT / "tests" / "unit", ROOT / "tests")
"""Where tests mirror the package; those of Spark that start Java lie in ``tests/spark``."""


def behaves(module: Path) -> bool:
    """Whether a module has code to run: a function with a body, which a Protocol's methods do not have."""
    return any(
        not all(isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant) for step in node.body)
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.FunctionDef)
    )


MODULES = [
    module.relative_to(PACKAGE)
    for module in sorted(PACKAGE.rglob("*.py"))
    if not module.stem.startswith("__") and behaves(module)
]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_module_has_tests_of_its_name(module: Path) -> None:
    name = module.with_name(f"test_{module.name}")
    assert any((home / name).exists() for home in HOMES), f"there is no tests/unit/{name}"


def test_tests_mirror_a_module_or_say_what_they_are_about() -> None:
    """A folder of tests is a room of the package."""
    unit = ROOT / "tests" / "unit"
    others = {"bench", "examples", "functions"}
    rooms = {
        folder.relative_to(unit)
        for folder in unit.rglob("*")
        if folder.is_dir()
        and folder.name != "__pycache__"
        and folder.relative_to(unit).parts[0] not in others
    }
    assert {room for room in rooms if not (PACKAGE / room).is_dir()} == set()
