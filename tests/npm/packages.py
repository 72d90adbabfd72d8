"""Packages of npm that tests use: fetched once, checked, and unpacked."""

import base64
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fanin.local import locks


class Unfetched(Exception):
    """npm did not fetch a package; the message has what it said."""


@dataclass(frozen=True)
class Package:
    """One version of a package.

    Attributes:
        name: as npm knows it.
        version: as npm knows it.
        integrity: SHA-512 of its archive, in base64, as npm publishes it.
    """

    name: str
    version: str
    integrity: str

    def unpacked(self, home: Path, finish: Callable[[Path], None] | None = None) -> Path:
        """Fetch the package into a folder of ``home``, unless it is there already.

        Args:
            home: where packages lie, each in a folder of its own.
            finish: called with the package's folder after it was unpacked. A package that could not be
                finished is fetched again the next time.

        Raises:
            Unfetched: the registry cannot be reached, or does not have the package.
            ValueError: the archive is not the one that was published.
        """
        folder = home / f"{self.name.rpartition('/')[2]}-{self.version}"
        with locks.exclusive(folder.with_name(f"{folder.name}.lock")):
            if not folder.exists():
                new = folder.with_name(f"{folder.name}.new")
                shutil.rmtree(new, ignore_errors=True)
                new.mkdir(parents=True)
                archive = self._fetch(new)
                digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
                if digest != self.integrity:
                    raise ValueError(f"{archive.name} has SHA-512 {digest}, expected {self.integrity}")
                subprocess.run(["tar", "--extract", "--file", archive, "--directory", new], check=True)
                archive.unlink()
                if finish:
                    finish(new / "package")
                new.rename(folder)
        return folder / "package"

    def _fetch(self, folder: Path) -> Path:
        package = f"{self.name}@{self.version}"
        run_npm("pack", package, "--pack-destination", folder, at=folder, to=f"fetch {package}")
        (archive,) = folder.glob("*.tgz")
        return archive


def node() -> str:
    """The command of Node.js, which may lie in the virtual environment only.

    Raises:
        FileNotFoundError: there is none.
    """
    found = shutil.which("node") or shutil.which("node", path=Path(sys.executable).parent)
    if found is None:
        raise FileNotFoundError("Node.js is not installed; make brings it with whatever it installs")
    return found


def npm() -> list[str | Path]:
    """The command of npm; the Node.js that make takes from PyPI brings it without a link."""
    if npm := shutil.which("npm"):
        return [npm]
    return [node(), Path(node()).resolve().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"]


def run_npm(*words: str | Path, at: Path, to: str) -> None:
    """Run npm in a folder; it says nothing but errors.

    Args:
        words: of the command.
        at: the folder.
        to: what for, as the error says it.

    Raises:
        Unfetched: it failed.
    """
    running = subprocess.run(
        [*npm(), *words, "--loglevel", "error"],
        cwd=at,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if running.returncode:
        raise Unfetched(f"npm cannot {to}:\n{running.stderr.strip()}")
