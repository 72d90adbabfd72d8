"""Whatever callers choose as a text stays a text: nothing of it runs, loads, leads away or hides."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from fanin.testing import InMemoryService
from tests.browser.consoles import Served, console_of
from tests.browser.gallery import Gallery, Words

RUNS: Final = "window.pwned=1;alert(1)"
HOSTILE: Final = (
    f"javascript:{RUNS}//</script></title></textarea><script>{RUNS}</script>"
    f"\"'><img src=x onerror={RUNS}><svg onload={RUNS}>"
    f"<a href=javascript:{RUNS}>x</a>{{{{7*7}}}}\u2028\u202egnp.\u2066\x85"
)
LONG: Final = HOSTILE + "<b>'&" * 2_000
FOUND: Final = """() => {
  const links = ['href', 'src', 'action', 'formaction'];
  const loads = 'main :is(script, img, iframe, object, embed, style)';
  const turns = /[\\u202a-\\u202e\\u2066-\\u2069]/;
  const own = one => [...one.childNodes].filter(node => node.nodeType === Node.TEXT_NODE);
  const all = [...document.querySelectorAll('*')];
  const text = one => one.outerHTML;
  return {
    ran: window.pwned ? ['a script'] : [],
    leads: all.filter(one => links.some(
      name => one.hasAttribute(name) && !/^[/#](?![/\\\\])/.test(one.getAttribute(name)))).map(text),
    loads: [...document.querySelectorAll(loads)].map(text),
    turns: all.filter(one => document.body.contains(one) && own(one).some(node => turns.test(node.nodeValue))
      && !getComputedStyle(one).unicodeBidi.includes('isolate')).map(text),
    wide: document.documentElement.scrollWidth > innerWidth ? [document.documentElement.scrollWidth] : [],
  };
}"""
"""What of a page comes from a text and is more than text: what ran, leads elsewhere, loads, turns the
direction of writing of what stands beside it, or makes the page too wide."""


@pytest.fixture(scope="module", params=[HOSTILE, LONG], ids=["markup", "long"])
def gallery(request: pytest.FixtureRequest) -> Gallery:
    """A gallery in which every text is hostile."""
    pattern = {"source": [request.param[:500]], "detail": {HOSTILE[:200]: [HOSTILE[:200]]}}
    return Gallery(InMemoryService(), Words(request.param, pattern=pattern))


@pytest.fixture(scope="module")
def plain() -> Iterator[Served]:
    with console_of(InMemoryService(), write=True) as served:
        yield served


@pytest.fixture
def harmless(page: Page) -> Iterator[None]:
    """Fails a test in which a text has run."""
    asked: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    yield
    assert asked == []


def check(page: Page) -> None:
    """Assert that nothing of a page comes from a text, but text."""
    assert page.evaluate(FOUND) == {"ran": [], "leads": [], "loads": [], "turns": [], "wide": []}
    assert "49" not in page.title()


def submit(page: Page, button: Locator) -> None:
    """Press a button that leads to another page, and check that page, not the one that is left."""
    with page.expect_event("load"):
        button.click()
    check(page)


@pytest.mark.usefixtures("harmless")
def test_no_page_runs_anything(page, served, gallery):
    for path in (gallery.pages() | gallery.questions()).values():
        answer = page.goto(served.url + path)
        assert answer is not None
        assert answer.status == 200
        assert len(answer.body()) < 100_000, path
        check(page)


@pytest.mark.usefixtures("harmless")
def test_no_update_runs_anything(page, served, gallery):
    for name in ("overview", "batches", "billion", "held", "scatter", "frame", "buffer", "topic"):
        page.goto(served.url + gallery.pages()[name])
        expect(page.locator("#live-state")).to_have_text(re.compile("Live|Ended"))
        check(page)


@pytest.mark.usefixtures("harmless")
def test_a_download_is_not_shown(page, served, gallery):
    # Given the body of a hostile message
    page.goto(served.url + gallery.pages()["failure"])
    expect(page.locator("pre.body")).to_contain_text(gallery.words.text[:8])
    link = page.get_by_role("link", name="Download the body")
    # When it is downloaded
    with page.expect_download() as started:
        link.click()
    # Then it is a file, whatever is in it
    assert started.value.path().read_text() == gallery.words.text
    headers = page.request.get(served.url + str(link.get_attribute("href"))).headers
    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-type"].startswith("text/plain")


@pytest.mark.usefixtures("harmless")
@pytest.mark.parametrize(
    "path",
    [
        "/batches?search={}",
        "/batches?state={}",
        "/batches?cursor={}",
        "/batches/{}",
        "/batches/{}/actions/close",
        "/scatters/{}",
        "/frames/{}",
        "/buffers/{}",
        "/buffers?cursor={}",
        "/directory/{}",
        "/directory/cars?attribute={}",
        "/directory/cars/{}",
        "/routes/{}",
        "/log?after={}",
        "/{}",
    ],
)
def test_an_address_runs_nothing(page, plain, faults, path):
    answer = page.goto(plain.url + path.format(quote(HOSTILE, safe="")))
    assert answer is not None
    if answer.status != 200:
        faults.expect(f"answer {answer.status}", "console: Failed to load resource")
    assert answer.status in {200, 400, 404}
    check(page)


@pytest.mark.usefixtures("harmless")
def test_what_somebody_asks_for_is_said_as_text(page, served, gallery, faults):
    # Given ranges that are none, and an error that nothing has
    faults.expect("answer 400", "console: Failed to load resource")
    page.goto(served.url + gallery.questions()["redrive"])
    page.get_by_label("Items").fill(HOSTILE)
    submit(page, page.get_by_role("button", name="Count again"))
    page.goto(f"{served.url}{gallery.questions()['redrive']}?error={quote(HOSTILE, safe='')}")
    check(page)
    # And a search
    page.get_by_role("searchbox").fill(HOSTILE[:200])
    submit(page, page.get_by_role("button", name="Find"))
    # When something is done that names them
    errors = gallery.service.services.ledger.errors(gallery.batches["ended"]).errors
    page.goto(f"{served.url}{gallery.questions()['redrive']}?error={quote(errors[0].error, safe='')}")
    submit(page, page.locator("form.do button"))
    page.goto(served.url + "/log")
    expect(page.locator("table.log")).to_contain_text("<script>")
    check(page)
