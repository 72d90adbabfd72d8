"""Tools that read the OpenAPI document as others do: fetched once, and only in the versions named here."""

import hashlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from fanin.entry.http.openapi import document
from fanin.entry.http.table import ROUTES
from fanin.local import locks
from tests.npm.packages import Unfetched

HOME: Final = Path(__file__).resolve().parents[2] / ".fanin" / "openapi"
GENERATOR: Final = ("openapi-python-client==0.29.1", "httpx==0.28.1", "attrs==26.1.0")
"""The generator, and what its clients need; in an environment of its own, since it pins much."""


def generator() -> Path:
    """The folder of the programs of the generator's environment, made unless it is there already.

    Raises:
        Unfetched: pip cannot install it.
    """
    folder = HOME / f"generator-{_digest(sys.version, *GENERATOR)}"
    with locks.exclusive(folder.with_name(f"{folder.name}.lock")):
        if not (folder / "installed").exists():
            folder.mkdir(parents=True, exist_ok=True)
            _run(sys.executable, "-m", "venv", "--clear", folder, at=HOME)
            pip = (folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
            _run(*pip, *GENERATOR, at=folder)
            (folder / "installed").touch()
    return folder / "bin"


@cache
def written() -> Path:
    """The document as a file."""
    HOME.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document(ROUTES), indent=2)
    path = HOME / f"{_digest(text)}.json"
    path.write_text(text)
    return path


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _run(*command: object, at: Path) -> None:
    done = subprocess.run(
        [str(part) for part in command], cwd=at, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise Unfetched(f"{command[0]} cannot install the tools of OpenAPI:\n{done.stdout}{done.stderr}")
