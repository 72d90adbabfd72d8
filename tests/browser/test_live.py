"""Pages that are kept up to date, where what is in front of the console sometimes refuses a request."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fanin.console.application import console
from fanin.console.options import Options
from fanin.domain.batch import OpenBatch
from fanin.testing import InMemoryService
from tests.browser.serving import served


class Overloaded:
    """Answers the first requests for live views as API Gateway does when it throttles."""

    def __init__(self, app: ASGIApp, refused: int) -> None:
        self._app = app
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if "/live/" in scope.get("path", "") and self._refused:
            self._refused -= 1
            app = PlainTextResponse("Too Many Requests", 429)
        await app(scope, receive, send)


@pytest.fixture
def service() -> InMemoryService:
    return InMemoryService()


@pytest.fixture
def url(service: InMemoryService) -> Iterator[str]:
    options = Options(sessions=False, root="/console")
    with served(lambda _: Overloaded(console(service.services, options), refused=1)) as found:
        yield f"{found}/console"


def test_a_refused_request_does_not_end_the_updates(page, url, service, faults):
    # Given a page whose first request for updates is refused
    faults.expect("429")
    page.clock.install()
    page.goto(f"{url}/batches")
    state = page.locator("#live-state")
    expect(state).to_have_text(re.compile("Trying again in 30 s"))
    # When there is something new, and time passes
    service.services.ledger.open(OpenBatch(user_key="catalog"))
    page.clock.fast_forward(30_000)
    # Then the page shows it
    expect(page.get_by_text("catalog")).to_be_visible()
    expect(state).to_have_text("Live.")
