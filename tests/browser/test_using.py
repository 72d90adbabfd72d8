"""The console is used by keyboard, without JavaScript, and by people who do not want motion."""

import re
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import expect

from fanin import Failure
from fanin.console import Options, console
from fanin.testing import InMemoryService
from tests.browser.consoles import console_of
from tests.browser.screenshots import Night
from tests.browser.serving import served
from tests.browser.views import reduced_motion, without_javascript

FOCUSABLE: Final = """() => [...document.querySelectorAll(
  'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]'
)].filter(one => one.tabIndex >= 0 && one.checkVisibility())"""
MOVING: Final = """() => [...document.querySelectorAll('*')].filter(one => {
  const style = getComputedStyle(one);
  return style.animationName !== 'none' || style.transitionDuration.split(', ').some(time => time !== '0s');
}).map(one => one.outerHTML)"""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 664)], ids=["desk", "phone"])
def test_what_stalls_is_seen_first_however_much_has_failed(page, width, height):
    night = Night(InMemoryService())
    page.set_viewport_size({"width": width, "height": height})
    with console_of(night.service, write=True) as served:
        page.goto(served.url)
        first = page.locator("#overview tbody tr").first
        expect(first).to_contain_text("payroll")
        expect(first.get_by_role("link", name="payroll")).to_be_in_viewport()
        expect(first.get_by_text("stalled:")).to_be_in_viewport()


@pytest.mark.parametrize("name", ["overview", "batches", "held", "failure", "picture", "scatter"])
def test_tab_reaches_everything_once(page, served, gallery, name):
    # Given a page
    page.goto(served.url + gallery.pages()[name])
    everything = page.evaluate(f"({FOCUSABLE})().length")
    page.evaluate("window.reached = new Set()")
    # When one presses Tab until the page ends
    for _ in range(everything):
        page.keyboard.press("Tab")
        page.evaluate("reached.add(document.activeElement)")
    # Then everything had the focus, and what has it can be seen
    missed = page.evaluate(f"({FOCUSABLE})().filter(one => !reached.has(one)).map(one => one.outerHTML)")
    assert missed == []
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_first_tab_skips_to_the_content(page, served):
    page.goto(served.url)
    page.keyboard.press("Tab")
    skip = page.get_by_text("Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_the_picture_is_walked_by_keyboard(page, served, gallery):
    # Given the picture of a billion items
    page.goto(served.url + gallery.pages()["picture"])
    readout = page.locator(".readout")
    # When one enters it and moves right and down
    page.locator("#picture-drawn [tabindex='0']").focus()
    first = readout.text_content()
    page.keyboard.press("ArrowRight")
    # Then the figures of the square that has the focus are read out
    expect(readout).not_to_have_text(str(first))
    assert readout.text_content() == page.evaluate(
        "document.activeElement.querySelector('title').textContent"
    )
    page.keyboard.press("Home")
    expect(readout).to_have_text(str(first))
    # When one goes in, down to single items
    for level in (3, 2, 1, 0):
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(rf"level={level}&"))
        expect(page.locator("#picture-drawn :focus")).to_have_count(1)
    # Then their states are read out, and Page Up leads back to the square that one came from
    expect(readout).to_contain_text("Item 0")
    page.keyboard.press("PageUp")
    page.wait_for_url(re.compile("level=1&"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("level=0&number=1"))
    page.keyboard.press("PageUp")
    page.wait_for_url(re.compile("level=1&"))
    expect(page.locator("#picture-drawn :focus title")).to_contain_text("64")
    # And a pointer reads out what it points at
    page.locator("#picture-drawn svg > a").nth(5).hover()
    expect(readout).to_contain_text("320")


@without_javascript
def test_everything_works_without_javascript(page, served, gallery, javascript):
    # Given the overview, one gets to a batch by a link, and to its pages
    page.goto(served.url)
    held = gallery.batches["held"]
    page.locator(f"a.name[href$='{held}']").first.click()
    page.get_by_role("link", name=re.compile("^Failures")).first.click()
    page.locator("td a, th a").filter(has_text="the row is not valid").first.click()
    expect(page.locator("main")).to_contain_text("the row is not valid")
    # Buttons are links to a page that asks, and a form does it
    page.goto(f"{served.url}/batches/{held}")
    page.get_by_role("link", name="Verify").click()
    page.locator("form.do button").click()
    expect(page.locator("h1")).to_have_text("Done")
    page.get_by_role("link", name="Log of actions").click()
    expect(page.locator("table.log tbody tr").first).to_contain_text("Verify")
    # Batches are found by a form
    page.get_by_role("searchbox").fill(str(held))
    page.get_by_role("button", name="Find").click()
    expect(page.locator("h1")).to_have_text("the row is not valid")
    # And the squares of the picture are links
    page.goto(served.url + gallery.pages()["picture"])
    page.locator("#picture-drawn svg > a").first.click()
    page.wait_for_url(re.compile("level=3&"))
    page.get_by_role("link", name="Up to").click()
    expect(page.locator("nav.path")).to_have_text("All 1,000,000,000 items")


@pytest.mark.parametrize("name", ["overview", "billion"])
def test_something_moves_where_people_do_not_mind(page, served, gallery, name):
    page.goto(served.url + gallery.pages()[name])
    assert page.evaluate(MOVING) != []


@reduced_motion
@pytest.mark.parametrize("name", ["overview", "billion", "picture", "buffers", "scatter"])
def test_nothing_moves_where_people_do(page, served, gallery, motion, name):
    page.goto(served.url + gallery.pages()[name])
    assert page.evaluate(MOVING) == []


@pytest.fixture
def question() -> Iterator[str]:
    """Address of the question whether five held items are given up."""
    service = InMemoryService()
    with service.tracker.batch(on_failure="hold") as batch:
        group = list(batch.add(10))
    service.tracker.fail([Failure(item, "x") for item in group[:5]])
    with served(lambda _: console(service.services, Options(sessions=False, write=True))) as url:
        yield f"{url}/batches/{batch.id}/actions/release"


def test_the_button_waits_until_what_was_typed_is_counted(page, question):
    # Given the question about all held items
    page.goto(question)
    act = page.get_by_role("button", name="Give up 5 held items")
    notice = page.get_by_text("does not know what you have typed")
    expect(act).to_be_enabled()
    expect(notice).to_be_hidden()
    # When somebody types fewer, the button about five cannot be pressed
    page.get_by_label("Items").fill("0..2")
    expect(act).to_be_disabled()
    expect(notice).to_be_visible()
    # When they take it back, it can
    page.get_by_label("Items").fill("")
    expect(act).to_be_enabled()
    # When they have it counted, the button is about these
    page.get_by_label("Items").fill("0..2")
    page.get_by_role("button", name="Count again").click()
    expect(page.get_by_role("button", name="Give up 2 held items")).to_be_enabled()
    # When they go back, nothing acts on what is not written there
    page.go_back()
    typed = page.get_by_label("Items").input_value()
    expect(act).to_be_enabled(enabled=not typed)
