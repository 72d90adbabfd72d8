"""Packages of npm that a lockfile names, each with its digest: installed once for each lockfile."""

import hashlib
from pathlib import Path

from fanin.local import locks
from tests.npm.packages import run_npm


def modules(project: Path, home: Path) -> Path:
    """The folder ``node_modules`` of a project, filled unless it is there already.

    Args:
        project: the folder with package.json and package-lock.json.
        home: where the installed projects lie, each in a folder of its own.

    Raises:
        Unfetched: npm cannot get a package, or it is not the one that the lockfile means.
    """
    lockfile = (project / "package-lock.json").read_bytes()
    folder = home / f"{project.name}-{hashlib.sha256(lockfile).hexdigest()[:16]}"
    with locks.exclusive(folder.with_name(f"{folder.name}.lock")):
        if not (folder / "installed").exists():
            folder.mkdir(parents=True, exist_ok=True)
            for path in project.iterdir():
                (folder / path.name).write_bytes(path.read_bytes())
            words = ("ci", "--ignore-scripts", "--no-audit", "--no-fund")
            run_npm(*words, at=folder, to=f"install {project.name}")
            (folder / "installed").touch()
    return folder / "node_modules"
