"""A console answers only who started it: what other pages, other names and other browsers get from it."""

from collections.abc import Iterator
from html import escape
from typing import Any

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from fanin.domain.batch import State
from fanin.testing import InMemoryService
from tests.browser.consoles import Served, console_of
from tests.browser.gallery import Gallery
from tests.browser.serving import served as serving

KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAQQQQEXAMPLEQQQQQ",
    "AWS_SECRET_ACCESS_KEY": "secretsecretEXAMPLEsecretsecretsecret123",
    "AWS_SESSION_TOKEN": "tokentokenEXAMPLEtokentokentoken",
}


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> Gallery:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return Gallery(InMemoryService())


@pytest.fixture
def served(gallery: Gallery) -> Iterator[Served]:
    with console_of(gallery.service, sessions=True, write=True) as served:
        yield served


@pytest.fixture
def elsewhere(served: Served, gallery: Gallery) -> Iterator[str]:
    """Another site, on another port of this machine, which is after the console."""
    target = escape(served.url + gallery.questions()["cancel"])
    field = '<input name="form_token" value="x"><button>Win!</button>'
    form = f'<form method="post" action="{target}">{field}</form>'
    bodies = {
        "form": form,
        "sandboxed": f'<iframe sandbox="allow-forms allow-scripts" srcdoc="{escape(form)}"></iframe>',
        "frame": f'<iframe src="{escape(served.url)}/"></iframe>',
        "empty": "",
    }

    def page(request: Any) -> HTMLResponse:
        return HTMLResponse(f"<!doctype html><title>x</title>{bodies[request.path_params['name']]}")

    with serving(lambda _: Starlette(routes=[Route("/{name}", page)])) as url:
        yield url


def nothing_was_done(served: Served, gallery: Gallery) -> bool:
    batch = gallery.service.services.ledger.status(gallery.batches["stalled"]).batch
    return batch.state is State.OPEN and not served.console.log.entries()


def test_a_launch_link_works_once(page, browser, served, faults):
    # Given a console that nobody has opened
    faults.expect("answer 403", "console: Failed to load resource")
    page.goto(served.url)
    expect(page.locator("body")).to_contain_text("answers only the browser that opened its launch link")
    # When its link is opened
    link = served.link("/log")
    page.goto(link)
    # Then the browser gets in, and the token is gone from the address
    expect(page.locator("h1")).to_have_text("Log of actions")
    assert page.url == served.url + "/log"
    page.get_by_role("link", name="Overview").click()
    expect(page.locator("#overview")).to_be_visible()
    # And another browser does not, by the same link
    with browser.new_context() as other:
        assert other.request.get(link).status == 403
        assert other.request.get(served.url).status == 403


@pytest.mark.parametrize(
    ("name", "blocked"), [("form", ()), ("sandboxed", ("net::ERR_BLOCKED_BY_RESPONSE", "frame-ancestors"))]
)
def test_a_form_of_another_site_does_nothing(page, served, gallery, elsewhere, *, faults, name, blocked):
    # Given a browser with a session; ports of a host are one site, so it sends the cookie along
    faults.expect("request to another host", *blocked)
    page.goto(served.link())
    # When it opens a page elsewhere that has a form for the console, and the form is sent
    page.goto(f"{elsewhere}/{name}")
    inner = page.frame_locator("iframe") if name == "sandboxed" else page
    with page.expect_response(served.url + "/**") as answered:
        inner.get_by_role("button").click()
    faults.expect("answer 403", "console: Failed to load resource")
    # Then it is refused, and nothing was done
    assert answered.value.status == 403
    assert answered.value.request.method == "POST"
    assert nothing_was_done(served, gallery)


def test_another_site_cannot_read_a_page(page, served, elsewhere, faults):
    faults.expect("request to another host", "blocked by CORS policy", "net::ERR_FAILED")
    page.goto(served.link())
    page.goto(f"{elsewhere}/empty")
    read = "url => fetch(url, {credentials: 'include'}).then(answer => answer.text(), () => 'refused')"
    assert page.evaluate(read, served.url) == "refused"


def test_another_site_cannot_frame_a_page(page, served, elsewhere, faults):
    faults.expect("request to another host", "frame-ancestors", "net::ERR_BLOCKED_BY_RESPONSE")
    page.goto(served.link())
    page.goto(f"{elsewhere}/frame")
    (frame,) = page.main_frame.child_frames
    frame.wait_for_load_state()
    assert "Overview" not in frame.content()


def test_no_credential_is_in_a_page(page, served, gallery):
    page.goto(served.link())
    for path in (gallery.pages() | gallery.questions()).values():
        source = page.request.get(served.url + path).text()
        assert [value for value in KEYS.values() if value in source] == [], path
