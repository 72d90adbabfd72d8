"""Nobody acts on other items than the ones that were counted."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from fanin import Failure
from fanin.console import Options, console
from fanin.testing import InMemoryService
from tests.browser.serving import served


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
