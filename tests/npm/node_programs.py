"""The packages that a program in Node.js needs to work with fanin: installed once, as a lockfile says."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Final

from fanin.local import locks
from tests.npm.packages import Unfetched, npm

HOME: Final = Path(__file__).resolve().parents[2] / ".fanin" / "npm"
PROJECT: Final = Path(__file__).with_name("node")
"""Where the package.json and the lockfile are, which names each package with its digest."""


def modules() -> Path:
    """The folder ``node_modules``, filled unless it is there already.

    Raises:
        Unfetched: npm cannot get a package, or it is not the one that the lockfile means.
    """
    lockfile = (PROJECT / "package-lock.json").read_bytes()
    folder = HOME / f"node-{hashlib.sha256(lockfile).hexdigest()[:16]}"
    with locks.exclusive(folder.with_name(f"{folder.name}.lock")):
        if not (folder / "installed").exists():
            folder.mkdir(parents=True, exist_ok=True)
            for path in PROJECT.iterdir():
                (folder / path.name).write_bytes(path.read_bytes())
            installing = subprocess.run(  # noqa: S603
                [*npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"],
                cwd=folder,
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
            if installing.returncode:
                raise Unfetched(f"npm cannot install {PROJECT.name}:\n{installing.stderr.strip()}")
            (folder / "installed").touch()
    return folder / "node_modules"
