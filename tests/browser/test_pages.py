"""Every page of the console is accessible in both schemes, fits into each screen, and is small."""

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from fanin.testing import InMemoryService
from tests.browser.axe import COLOURS, accessible
from tests.browser.consoles import console_of
from tests.browser.gallery import Gallery
from tests.browser.views import HEIGHTS

LARGEST: Final = 100_000
"""Bytes of a page."""
EXAMPLE: Final = Gallery(InMemoryService())
"""A gallery has the same pages each time; this one is only asked for their names."""


def looks_right(page: Page) -> None:
    """Assert that a page is accessible in both schemes, and that it fits into a small and a large screen."""
    accessible(page)
    page.emulate_media(color_scheme="dark")
    accessible(page, *COLOURS)
    for width, height in HEIGHTS.items():
        page.set_viewport_size({"width": width, "height": height})
        needed = page.evaluate("document.documentElement.scrollWidth")
        assert needed <= width, f"{page.url} is {needed} pixels wide on a screen of {width}"


@pytest.mark.parametrize("name", EXAMPLE.pages())
def test_a_page_is_accessible_fits_and_is_small(page, served, gallery, name):
    answer = page.goto(served.url + gallery.pages()[name])
    assert answer is not None
    assert len(answer.body()) < LARGEST
    assert page.title().endswith(" · fanin · fanin")
    expect(page.locator("h1")).to_have_count(1)
    looks_right(page)


@pytest.mark.parametrize("name", EXAMPLE.questions())
def test_a_question_is_accessible_and_fits(page, served, gallery, name):
    page.goto(served.url + gallery.questions()[name])
    looks_right(page)


@pytest.mark.parametrize("name", EXAMPLE.errors())
def test_an_error_is_accessible_and_fits(page, served, gallery, faults, name):
    path, status = gallery.errors()[name]
    faults.expect(f"answer {status}", "console: Failed to load resource")
    page.goto(served.url + path)
    looks_right(page)


def test_an_outcome_and_the_log_are_accessible_and_fit(page, served, gallery):
    page.goto(served.url + gallery.questions()["verify"])
    page.locator("form.do button").click()
    expect(page.locator("h1")).to_have_text("Done")
    looks_right(page)
    page.goto(served.url + "/log")
    expect(page.locator("table.log tbody tr").first).to_contain_text("Verify")
    looks_right(page)


def test_a_read_only_console_says_so_where_a_button_would_lead(page, gallery, faults):
    faults.expect("answer 403", "console: Failed to load resource")
    with console_of(gallery.service) as served:
        page.goto(served.url + gallery.questions()["close"])
        expect(page.locator("main")).to_contain_text("--write")
        looks_right(page)
        page.goto(served.url + gallery.pages()["held"])
        expect(page.locator("main").get_by_role("link", name="Release")).to_have_count(0)
