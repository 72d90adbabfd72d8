"""Which browser tests take, and how the one from npm is unpacked."""

import platform
import shutil
from pathlib import Path

import pytest

from tests.browser import chromium


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a browser, on which Linux runs on x86_64."""
    monkeypatch.delenv(chromium.CHOICE, raising=False)
    monkeypatch.setattr(shutil, "which", lambda command, path=None: None)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.mark.usefixtures("bare")
def test_the_browser_that_the_environment_names_comes_first(monkeypatch, tmp_path):
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
def test_other_machines_need_a_browser_of_their_own(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert "not for Darwin on arm64; install one" in str(chromium.absent())
    monkeypatch.setattr(shutil, "which", lambda command, path=None: command if "Mac" in command else None)
    assert chromium.absent() is None
    assert chromium.fetch().program == Path(chromium.ON_A_MAC)
