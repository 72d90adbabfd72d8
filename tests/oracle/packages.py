"""Packages of npm that hold a store: fetched once, checked, and unpacked."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from fanin.local import locks


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

    def unpacked(self, home: Path) -> Path:
        """Fetch the package into a folder of ``home``, unless it is there already.

        Raises:
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
                with tarfile.open(archive) as packed:
                    packed.extractall(new, filter="data")
                archive.unlink()
                new.rename(folder)
        return folder / "package"

    def _fetch(self, folder: Path) -> Path:
        subprocess.run(  # noqa: S603
            [*_npm(), "pack", "--silent", f"{self.name}@{self.version}", "--pack-destination", folder],
            cwd=folder,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        (archive,) = folder.glob("*.tgz")
        return archive


def _npm() -> list[str | Path]:
    """The command of npm; the Node.js that ``make setup`` takes from PyPI brings it without a link."""
    if npm := shutil.which("npm"):
        return [npm]
    node = shutil.which("node") or shutil.which("node", path=Path(sys.executable).parent)
    if node is None:
        raise FileNotFoundError("neither npm nor node is installed; run make setup, which brings them")
    return [node, Path(node).resolve().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"]
