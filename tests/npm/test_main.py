"""`make setup` fetches what tests need, and goes on without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site import hooks
from tests.browser import axe, chromium
from tests.npm import node_programs, projects
from tests.npm.__main__ import fetch
from tests.npm.packages import Package, Unfetched
from tests.openapi import tools
from tests.oracle import stores


@pytest.fixture(autouse=True)
def _linux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that needs every package."""
    monkeypatch.setattr(stores, "absent", lambda: None)
    monkeypatch.setattr(chromium, "absent", lambda: None)
    monkeypatch.setattr(chromium, "_installed", lambda: None)
    monkeypatch.delenv(stores.CHOICE, raising=False)
    monkeypatch.setattr(tools, "HOME", tmp_path)
    monkeypatch.setattr(tools, "_run", lambda *_, at: None)
    monkeypatch.setattr(projects, "run_npm", lambda *_, at, to: None)
    monkeypatch.setattr(node_programs, "modules", (tmp_path / "node_modules").mkdir)


def test_all_packages_are_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fetched: list[Package] = []

    def unpacked(package: Package, home: Path, finish: object = None) -> Path:
        fetched.append(package)
        return home

    monkeypatch.setattr(Package, "unpacked", unpacked)
    assert fetch() is None
    assert sorted(path.parent.name.partition("-")[0] for path in tmp_path.glob("*/installed")) == [
        "generator",
        "linters",
    ]
    assert fetched == [stores.DYNOXIDE, chromium.PACKAGE, axe.PACKAGE, hooks.MERMAID]
    assert (tmp_path / "node_modules").exists()


def test_without_a_network_it_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Package] = []

    def unpacked(package: Package, home: Path, finish: object = None) -> Path:
        tried.append(package)
        raise Unfetched(f"npm cannot fetch {package.name}")

    monkeypatch.setattr(Package, "unpacked", unpacked)
    assert fetch() == (
        "npm cannot fetch @dynoxide/linux-x64\ngoing on without it; the tests that need it try again"
    )
    assert tried == [stores.DYNOXIDE]
