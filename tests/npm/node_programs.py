"""The packages that a program in Node.js needs to work with fanin."""

from pathlib import Path
from typing import Final

from tests.npm import projects

HOME: Final = Path(__file__).resolve().parents[2] / ".fanin" / "npm"
PROJECT: Final = Path(__file__).with_name("node")
"""Where the package.json and the lockfile are."""


def modules() -> Path:
    """The folder ``node_modules``; see ``projects.modules``."""
    return projects.modules(PROJECT, HOME)
