"""Pages are kept up to date without a reload, and nothing that somebody does with them is disturbed."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from fanin.errors import ServiceUnavailable
from fanin.testing import InMemoryService
from tests.browser.consoles import Served, console_of

WATCH: Final = """parts => {
  window.changed = {elements: [], texts: 0};
  const observer = new MutationObserver(all => all.forEach(({type, addedNodes, removedNodes}) => {
    if (type !== 'childList') changed.texts += 1;
    for (const node of [...addedNodes, ...removedNodes]) {
      changed.elements.push(node.outerHTML ?? node.nodeValue);
    }
  }));
  for (const part of document.querySelectorAll(parts)) {
    observer.observe(part, {childList: true, subtree: true, characterData: true, attributes: true});
  }
}"""
HIDDEN: Final = """hidden => {
  Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture
def service() -> InMemoryService:
    return InMemoryService()


@pytest.fixture
def served(service: InMemoryService) -> Iterator[Served]:
    with console_of(service, write=True) as served:
        yield served


@pytest.fixture
def items(service: InMemoryService) -> list[str]:
    """The items of a batch named catalog, which takes no more."""
    with service.tracker.batch(user_key="catalog") as batch:
        return list(batch.add(1_000))


def batch_of(items: list[str]) -> str:
    return f"/batches/{items[0].partition(':')[0]}"


def done(service: InMemoryService, items: list[str]) -> None:
    """Mark items as done, a second later."""
    service.advance(timedelta(seconds=1))
    service.tracker.ack(items)


def live(page: Page, text: str = "Live.") -> None:
    expect(page.locator("#live-state")).to_have_text(text)


def test_an_update_changes_texts_and_keeps_what_somebody_does(page, served, service, items):
    # Given the page of a batch, live, with a table that somebody opened, and the keyboard in the picture
    page.goto(served.url + batch_of(items))
    page.evaluate("window.loaded = 'once'")
    heading = page.locator("#heading")
    done(service, items[:100])
    expect(heading).to_contain_text("100 of 1,000")
    done(service, items[100:200])
    expect(heading).to_contain_text("/s")
    page.locator("details", has=page.locator("#picture-table")).locator("summary").click()
    page.locator("#picture-drawn [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    focused = page.evaluate_handle("document.activeElement")
    page.evaluate(
        WATCH, "#heading, #picture-drawn, #picture-figures, #picture-table, #tabs, #buttons, #facts"
    )
    # When more is done
    done(service, items[200:300])
    expect(heading).to_contain_text("300 of 1,000")
    # Then the figures are new, in the same elements
    assert page.evaluate("changed.texts") > 0
    assert page.evaluate("changed.elements") == []
    # And the focus, what was opened, and the page are what they were
    assert page.evaluate("one => one === document.activeElement", focused)
    expect(page.locator("#picture-table")).to_be_visible()
    assert page.evaluate("window.loaded") == "once"
    live(page)


def test_the_overview_and_lists_change_in_place(page, served, service, items):
    for path, part in (("/", "#overview"), ("/batches?state=closed", "#batches")):
        page.goto(served.url + path)
        row = page.locator(part).locator("tr", has_text="catalog")
        for _ in range(2):
            done(service, items[:100])
            items = items[100:]
            expect(row).to_contain_text(f"{1_000 - len(items):,} of 1,000")
        link = row.get_by_role("link")
        link.focus()
        page.evaluate(WATCH, part)
        done(service, items[:100])
        items = items[100:]
        expect(row).to_contain_text(f"{1_000 - len(items):,} of 1,000")
        assert page.evaluate("changed.elements") == []
        expect(link).to_be_focused()


def test_what_is_new_appears_by_itself(page, served, service):
    # Given the overview of a service in which nothing happens
    page.goto(served.url)
    expect(page.locator("main")).to_contain_text("Nothing is running.")
    # When a batch is opened, it appears
    batch = service.tracker.open(user_key="fresh")
    expect(page.locator("main")).to_contain_text("fresh")
    # And when an item of it fails, the page says that somebody should look
    service.tracker.fail(service.tracker.add(batch.batch_id, 2)[0], "no price")
    expect(page.locator("section", has=page.locator("#attention"))).to_contain_text("1 failed item so far")


def test_nothing_is_read_while_nobody_looks(page, served, service, items):
    # Given a page that is live, and another one beside it
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(served.url + batch_of(items))
    live(page)
    other = page.context.new_page()
    other.goto(served.url + batch_of(items))
    # When it is hidden, it asks for nothing more, while the other goes on
    page.evaluate(HIDDEN, True)
    before = len(asked)
    for begin in (0, 200, 400):
        done(service, items[begin : begin + 100])
        expect(other.locator("#heading")).to_contain_text(f"{begin // 2 + 100} of 1,000")
    assert len(asked) == before
    # When it is shown again, it is up to date
    page.evaluate(HIDDEN, False)
    expect(page.locator("#heading")).to_contain_text("300 of 1,000")
    # And so it is when somebody comes back to it
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    done(service, items[500:600])
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(page.locator("#heading")).to_contain_text("400 of 1,000")


def test_a_page_says_that_nothing_changes_any_more(page, served, service, items):
    page.goto(served.url + batch_of(items))
    live(page)
    done(service, items)
    live(page, "Ended: nothing here changes any more.")
    expect(page.locator("#heading")).to_contain_text("complete")
    expect(page.get_by_role("link", name="Remove")).to_be_visible()


def test_a_page_says_that_the_service_does_not_answer(page, served, service, items):
    page.goto(served.url + batch_of(items))
    live(page)

    def refuse(access: str, moment: str) -> None:
        raise ServiceUnavailable("the tables are busy")

    service.on_call = refuse
    expect(page.locator("#live-state")).to_contain_text(
        "Could not be read: the tables are busy. Trying again in"
    )
    service.on_call = None
    live(page)


def test_a_page_says_that_the_console_was_stopped(page, service, faults):
    faults.expect("failed request: GET", "console: Failed to load resource")
    with ExitStack() as running:
        served = running.enter_context(console_of(service))
        page.goto(served.url)
        live(page)
        running.close()
        expect(page.locator("#live-state")).to_have_text(
            "The console does not answer. Is it still running? Trying again."
        )
