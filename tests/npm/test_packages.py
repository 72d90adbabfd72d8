"""Packages of npm: fetched once, and only as they were published."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from tests.npm.packages import Package


def archive() -> bytes:
    """An archive as npm packs it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        text = b"#!/bin/sh\n"
        entry = tarfile.TarInfo("package/store")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    return packed.getvalue()


ARCHIVE = archive()
INTEGRITY = base64.b64encode(hashlib.sha512(ARCHIVE).digest()).decode()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of packages that were fetched, all of which hold the same archive."""
    names: list[str] = []

    def fetch(package: Package, folder: Path) -> Path:
        names.append(package.name)
        path = folder / "store.tgz"
        path.write_bytes(ARCHIVE)
        return path

    monkeypatch.setattr(Package, "_fetch", fetch)
    return names


def test_a_package_is_fetched_once(fetched: list[str], tmp_path: Path) -> None:
    package = Package("@maker/store", "1.0", INTEGRITY)

    folders = {package.unpacked(tmp_path) for _ in range(3)}

    assert folders == {tmp_path / "store-1.0" / "package"}
    assert (folders.pop() / "store").read_text() == "#!/bin/sh\n"
    assert fetched == ["@maker/store"]


def test_an_archive_that_was_changed_is_refused_and_fetched_again(fetched: list[str], tmp_path: Path) -> None:
    changed = Package("store", "1.0", base64.b64encode(bytes(64)).decode())

    for _ in range(2):
        with pytest.raises(ValueError, match="SHA-512"):
            changed.unpacked(tmp_path)
    assert not (tmp_path / "store-1.0").exists()
    assert len(fetched) == 2


def test_a_package_that_could_not_be_finished_is_not_kept(fetched: list[str], tmp_path: Path) -> None:
    package = Package("@maker/store", "1.0", INTEGRITY)
    finished: list[str] = []

    def fail(folder: Path) -> None:
        raise OSError(f"no room for {folder.name}")

    def finish(folder: Path) -> None:
        finished.extend(path.name for path in folder.iterdir())
        (folder / "store").rename(folder / "shop")

    # Given a package whose last step fails
    with pytest.raises(OSError, match="no room for package"):
        package.unpacked(tmp_path, fail)
    # When it is unpacked again, and once more
    folders = [package.unpacked(tmp_path, finish) for _ in range(2)]
    # Then it was fetched again and finished once
    assert [folder / "shop" for folder in folders if (folder / "shop").exists()] == [
        tmp_path / "store-1.0" / "package" / "shop"
    ] * 2
    assert (finished, fetched) == (["store"], ["@maker/store"] * 2)
