"""Fixtures of tests that look at pages in a browser.

A test takes ``page`` and goes where it wants. Whatever it asserts, it fails if a page had a fault that it did
not expect (`tests.browser.faults`). ``motion`` and ``javascript`` say how the page is seen; the marks of
`tests.browser.views` set them.
"""

import traceback
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from fanin.testing import InMemoryService
from tests.browser import chromium
from tests.browser.consoles import Served, console_of
from tests.browser.faults import Faults
from tests.browser.gallery import Gallery
from tests.browser.views import Motion, View
from tests.browser.visits import Visit

HERE: Final = Path(__file__).parent
expect.set_options(timeout=60_000)  # milliseconds; a busy machine takes its time


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser for this session (with xdist, for this worker)."""
    if reason := chromium.absent():
        pytest.skip(reason)
    program = chromium.fetch()
    with sync_playwright() as playwright, program.launch(playwright) as started:
        yield started


@pytest.fixture
def motion() -> Motion:
    return "no-preference"


@pytest.fixture
def javascript() -> bool:
    return True


@pytest.fixture
def view(motion: Motion, javascript: bool) -> View:
    return View(motion, javascript)


@pytest.fixture
def visit(browser: Browser, view: View, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """What `page` and `faults` belong to."""
    visit = Visit(browser, view, f"{request.node.path.stem}-{request.node.name}")
    yield visit
    visit.close()


@pytest.fixture
def page(visit: Visit) -> Page:
    """An empty page, in a context of its own: no cookies, nothing cached."""
    return visit.page


@pytest.fixture
def faults(visit: Visit) -> Faults:
    """``faults.expect("404")`` accepts what would fail the test, and fails it if it does not happen."""
    return visit.faults


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests last: asyncio.run does not work in a process while Playwright runs in it.

    Of these, those that deploy a stack take longest, and begin.
    """
    items.sort(key=lambda item: (HERE in item.path.parents, "stack" not in getattr(item, "fixturenames", ())))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Generator[None, None, None]:
    """Fail a test whose pages had faults, and keep what shows why it failed."""
    visit = item.funcargs.get("visit")
    try:
        yield
        if isinstance(visit, Visit):
            visit.check()
            visit.passed()
    except (Exception, pytest.fail.Exception):  # the latter is not an Exception
        if isinstance(visit, Visit):
            visit.failed(traceback.format_exc())
        raise


@pytest.fixture(scope="module")
def gallery() -> Gallery:
    """Something of everything that the console shows."""
    return Gallery(InMemoryService())


@pytest.fixture(scope="module")
def served(gallery: Gallery) -> Iterator[Served]:
    with console_of(gallery.service, write=True) as served:
        yield served
