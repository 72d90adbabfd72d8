"""The folders of local stacks that a user's state folder remembers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fanin.client import local_stack


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "fanin" / "local.json"


def test_the_last_one_is_first_and_none_is_there_twice(file: Path) -> None:
    assert local_stack.remembered() == []
    for root in ("/a", "/b", "/a"):
        local_stack.remember(Path(root))
    assert local_stack.remembered() == [Path("/a"), Path("/b")]
    assert [one.name for one in file.parent.iterdir()] == ["local.json"]


def test_those_of_long_ago_are_forgotten(file: Path) -> None:
    for number in range(local_stack.MOST_ROOTS + 5):
        local_stack.remember(Path(f"/{number}"))
    assert len(local_stack.remembered()) == local_stack.MOST_ROOTS
    assert local_stack.remembered()[0] == Path(f"/{local_stack.MOST_ROOTS + 4}")


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"null", b"\xff", b"{}", b'{"roots": [1]}', b'{"roots": 1}']
)
def test_a_damaged_file_counts_as_none_and_is_replaced(file: Path, damage: bytes) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(damage)
    assert local_stack.remembered() == []
    local_stack.remember(Path("/a"))
    assert local_stack.remembered() == [Path("/a")]


@pytest.mark.parametrize("state", ["", "relative/folder"])
def test_without_an_absolute_state_folder_it_is_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", state)
    monkeypatch.setenv("HOME", str(tmp_path))
    local_stack.remember(Path("/a"))
    assert (tmp_path / ".local/state/fanin/local.json").exists()


def test_a_user_without_a_home_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert local_stack.remembered() == []
    with pytest.raises(OSError, match="no home"):
        local_stack.remember(Path("/a"))
