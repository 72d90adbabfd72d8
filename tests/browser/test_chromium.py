"""Which browser tests take, and how the one from npm is unpacked."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser import chromium
from tests.npm.packages import Package, node

PACK = """
const [file] = process.argv.slice(1), fs = require("node:fs");
fs.writeFileSync(`${file}.br`, require("node:zlib").brotliCompressSync(fs.readFileSync(file)));
"""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a browser, on which Linux runs on x86_64."""
    monkeypatch.delenv(chromium.CHOICE, raising=False)
    monkeypatch.setattr(shutil, "which", lambda command, path=None: None)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.mark.usefixtures("bare")
def test_the_browser_that_the_environment_names_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Given a browser of the system and another
    monkeypatch.setattr(shutil, "which", lambda command, path=None: f"/usr/bin/{command}")
    assert chromium.fetch() == chromium.Chromium(Path("/usr/bin/chromium"))
    mine = tmp_path / "mine"
    mine.touch(0o755)
    # When the environment names the other, it is taken
    monkeypatch.setenv(chromium.CHOICE, str(mine))
    assert chromium.fetch() == chromium.Chromium(mine)
    # When it names one that does not exist, none is
    monkeypatch.setenv(chromium.CHOICE, str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match=r"FANIN_CHROMIUM names .*absent"):
        chromium.fetch()


@pytest.mark.usefixtures("bare")
def test_a_machine_without_a_browser_takes_the_one_from_npm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Package, "unpacked", lambda package, home, finish: tmp_path / package.name)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    folder = tmp_path / "@sparticuz/chromium/bin"
    assert chromium.absent() is None
    assert chromium.fetch() == chromium.Chromium(
        folder / "chromium",
        {"LD_LIBRARY_PATH": f"{folder}/lib:/opt/lib", "FONTCONFIG_PATH": str(folder)},
    )


@pytest.mark.usefixtures("bare")
def test_other_machines_need_a_browser_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert "not for Darwin on arm64; install one" in str(chromium.absent())
    monkeypatch.setattr(shutil, "which", lambda command, path=None: command if "Mac" in command else None)
    assert chromium.absent() is None
    assert chromium.fetch().program == Path(chromium.ON_A_MAC)


def test_the_package_is_inflated(tmp_path: Path) -> None:
    # Given files and folders packed as those of the package
    folder = tmp_path / "bin"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "libnss3.so").write_bytes(b"library")
    (folder / "chromium").write_bytes(b"#!" + bytes(100_000))
    shutil.make_archive(str(folder / "al2023"), "tar", folder, "lib")
    for name in ("chromium", "al2023.tar"):
        subprocess.run([node(), "-e", PACK, folder / name], check=True)  # noqa: S603
        (folder / name).unlink()
    shutil.rmtree(folder / "lib")
    # When they are inflated
    chromium._inflate(tmp_path)
    # Then a program, its libraries and its fonts are there, and nothing is left of what was packed
    assert (folder / "chromium").read_bytes() == b"#!" + bytes(100_000)
    assert (folder / "chromium").stat().st_mode & 0o777 == 0o755
    assert (folder / "lib" / "libnss3.so").read_bytes() == b"library"
    assert {path.name for path in folder.iterdir()} == {"chromium", "fonts.conf", "lib"}
