"""Faults of pages fail tests, whatever these assert, and what shows them is kept."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.example import example
from tests.browser.serving import served
from tests.browser.views import View
from tests.browser.visits import ARTIFACTS, KEEP, Visit

Visited = Callable[[str], Visit]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with served(example) as url:
        yield url


@pytest.fixture
def artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ARTIFACTS, str(tmp_path))
    return tmp_path


@pytest.fixture
def visited(browser: Browser, site: str, artifacts: Path) -> Iterator[Visited]:
    """Opens a page as a test would, without failing this one."""
    with ExitStack() as visits:

        def visited(path: str) -> Visit:
            visit = Visit(browser, View(), "test_batches-test_list[360-dark]")
            visits.callback(visit.close)
            visit.page.goto(f"{site}/{path}")
            return visit

        yield visited


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("inline-script", r"script-src-elem of the content security policy forbids inline"),
        ("inline-style", r"style-src-attr of the content security policy forbids inline"),
        ("foreign", r"request to another host than 127\.0\.0\.1:\d+: http://elsewhere\.invalid/pixel\.gif"),
        ("throwing", r"uncaught: .*not a function"),
        ("complaining", r"console: out of order \(http.*complaining\.js\)"),
        ("incomplete", r"answer 404: GET http.*absent\.png"),
        ("absent", r"answer 404: GET http.*absent"),
    ],
)
def test_a_fault_is_found(visited, path, fault):
    # Given a visit to a page with a fault
    visit = visited(path)
    # When it is checked
    with pytest.raises(AssertionError) as failure:
        visit.check()
    # Then the message says what is wrong
    assert re.search(fault, str(failure.value)), failure.value


def test_a_stream_of_events_may_end_with_its_page(page, site):
    page.goto(f"{site}/streaming")
    page.get_by_text("new").wait_for()
    page.goto(f"{site}/sound")


def test_a_test_may_expect_a_fault(page, site, faults):
    faults.expect("http://elsewhere.invalid/pixel.gif")
    page.goto(f"{site}/foreign")


def test_an_expected_fault_must_happen(visited):
    visit = visited("sound")
    visit.faults.expect("404")
    with pytest.raises(AssertionError, match=r"did not happen:\n404"):
        visit.check()


def test_all_is_kept_on_demand(visited, artifacts, monkeypatch):
    visited("sound").passed()
    assert list(artifacts.glob("**/*.*")) == []
    monkeypatch.setenv(KEEP, "1")
    visited("sound").passed()
    folder = artifacts / "test_batches-test_list-360-dark"
    assert {path.name for path in folder.glob("*")} == {"page.png", "page.html", "trace.zip"}


TESTS = """
import pytest
from tests.browser.example import example
from tests.browser.serving import served

@pytest.fixture
def site():
    with served(example) as url:
        yield url

def test_fault(page, site):
    page.goto(f"{site}/throwing")

def test_assertion(page, site):
    page.goto(f"{site}/sound")
    assert page.title() == "Other"

def test_sound(page, site):
    page.goto(f"{site}/sound")
"""


@pytest.mark.usefixtures("browser")  # skips this where there is none
def test_a_fault_fails_a_test_and_what_shows_it_is_kept(tmp_path):
    # Given tests of which one has a page with a fault, and one fails by itself
    (tmp_path / "test_inner.py").write_text(TESTS)
    # When they run
    options = f"--rootdir {tmp_path} -c pyproject.toml -p tests.browser.conftest -p no:cacheprovider"
    kept = {ARTIFACTS: str(tmp_path / "kept"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split(), tmp_path / "test_inner.py"],
        env={**os.environ, **kept},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    # Then both have failed, and there is what shows why
    assert re.findall(r"^FAILED \S*::(\w+)", run.stdout, re.MULTILINE) == ["test_fault", "test_assertion"], (
        run.stdout
    )
    assert "uncaught: not a function" in run.stdout
    assert "2 failed, 1 passed" in run.stdout
    found = {str(path.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*.*")}
    assert found == {
        f"test_inner-{test}/{name}"
        for test in ("test_fault", "test_assertion")
        for name in ("page.png", "page.html", "reason.txt")
    }
    assert "not a function" in (tmp_path / "kept/test_inner-test_fault/reason.txt").read_text()
