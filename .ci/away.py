"""Runs commands away from the checkout, so that they find nothing there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(*command: object, fails: bool = False, folder: Path | None = None, **variables: str) -> str:
    """Run a command away from the checkout, and return what it printed.

    Args:
        command: the program and its arguments.
        fails: whether it has to fail; what it printed to stderr is returned then.
        folder: where it runs; None runs it in the root of the file system.
        variables: environment variables, besides those of this process.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder or ROOT.anchor,
        env=inherited | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return (done.stderr if fails else done.stdout).strip()


def check(holds: object, otherwise: str) -> None:
    if not holds:
        sys.exit(otherwise)


def environment(folder: Path, *requirements: object) -> Path:
    """Make a virtual environment; its folder of programs."""
    run(sys.executable, "-m", "venv", folder)
    programs = folder / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    return programs
