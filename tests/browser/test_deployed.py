"""The console of the deployed stack: the demo's trouble is found and mended by clicks alone."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect

import fanin
from examples.console.world import CATALOG, INVOICES, ORDERS, PRICES, World
from fanin import Failure, Tracker
from fanin.app.targets.records import change, read_targets
from fanin.domain.directory import PutRoute, Register
from fanin.entry.settings import Settings
from fanin.entry.wiring import connect
from fanin.types import TargetState
from tests.browser.axe import accessible
from tests.browser.consoles import Served, console_over
from tests.e2e.conftest import caller, channel, deployment, new_tracker, policies_enforced, tracker
from tests.e2e.deployment import eventually

__all__ = ["caller", "channel", "deployment", "new_tracker", "policies_enforced", "tracker"]  # fixtures

FANIN: Final = Path(sys.executable).with_name("fanin")
SLOW: Final = 40_000
"""Milliseconds that work may take on a busy machine."""


@pytest.fixture
def page(page: Page) -> Page:
    """A page that waits for a busy machine."""
    page.set_default_timeout(SLOW)
    return page


@pytest.fixture
def world(tracker: Tracker) -> Iterator[World]:
    world = World(tracker, airports=300, pause=0.005, patience=timedelta(seconds=10))
    try:
        world.start()
        yield world
    finally:
        world.stop()


@pytest.fixture
def served(tracker: Tracker) -> Iterator[Served]:
    with console_over(tracker.services, write=True) as served:
        yield served


def attention(page: Page, name: str) -> Locator:
    """The row of a batch among those that need attention."""
    section = page.locator("section", has=page.locator("#attention"))
    return section.locator("tr", has=page.get_by_role("link", name=name, exact=True))


def open_batch(page: Page, name: str, why: str) -> None:
    """Find a batch on the overview, and go to its page."""
    page.get_by_role("link", name="Overview").click()
    row = attention(page, name)
    expect(row).to_contain_text(why, timeout=SLOW)
    row.get_by_role("link", name=name, exact=True).click()
    expect(page.locator("h1")).to_have_text(name)


def go_to(page: Page, part: str, *links: str) -> None:
    """Go to a part of the console, and on by links."""
    page.get_by_role("navigation").get_by_role("link", name=part).click()
    for link in links:
        page.locator("main").get_by_role("link", name=link, exact=True).first.click()


def press(page: Page, button: str, act: str, says: str, **fields: str) -> None:
    """Press a button of a page, fill the fields of the question that follows, and press its button."""
    page.get_by_role("list", name="Actions").get_by_role("link", name=button, exact=True).click()
    for name, value in fields.items():
        page.locator(f"form.do [name={name}]").fill(value)
    page.get_by_role("button", name=act).click()
    expect(page.get_by_role("status").first).to_contain_text(says, timeout=SLOW)


def completes(page: Page) -> None:
    expect(page.locator("#heading .state")).to_have_text("complete", timeout=SLOW)


def test_the_trouble_of_the_demo_is_found_and_mended_by_clicks(page, served, world, deployment):
    page.goto(served.url)
    # When the held orders are sent again, their batch completes
    open_batch(page, ORDERS, "180 of 200")  # all that will fail has failed
    expect(page.locator("#failures")).to_contain_text("the payment service answered")
    press(page, "Redrive", "Send 20 messages again", "20 messages sent again.")
    page.get_by_role("link", name="Back to the batch").click()
    completes(page)
    # When the failed rows of the catalog are sent again, a batch that retries them completes
    open_batch(page, CATALOG, "3 failed items")
    completes(page)
    press(page, "Redrive", "Send 3 messages again", "3 messages sent again.")
    page.get_by_role("link", name="which retries them").click()
    completes(page)
    expect(page.locator("#heading")).to_contain_text("3 of 3")
    # When the batch whose producer died is closed, it completes at once; the list has it only later
    page.goto(f"{served.url}/batches/{world.batches[PRICES]}")
    press(page, "Close", "Close the batch at 60 items", "closed and complete: all 60 items are done.")
    # When the batch that nobody works on is cancelled, it is over
    eventually(lambda: deployment.invoke("reaper")["stalled"])
    open_batch(page, INVOICES, "stalled")
    expect(page.locator("#why")).to_contain_text("nobody", ignore_case=True)
    press(page, "Cancel", "Cancel 40 items that are not done", "is cancelled: 40 items of 40 were not done.")

    page.get_by_role("link", name="Back to the batch").click()
    press(page, "Remove", "Remove the batch and its 40 items", "are removed.")
    # Then nothing needs attention
    page.get_by_role("link", name="Overview").click()
    for name in (CATALOG, ORDERS, PRICES, INVOICES):
        expect(attention(page, name)).to_have_count(0, timeout=SLOW)
    expect(page.locator("section", has=page.locator("#attention"))).to_contain_text("Nothing.", timeout=SLOW)
    accessible(page)
    # And the log has all of it, the newest first
    go_to(page, "Log")
    done = ["Remove", "Cancel", "Close", "Redrive", "Redrive"]
    expect(page.locator("table.log tbody th")).to_have_text(done)
    expect(page.locator("table.log .result")).to_have_text(["done"] * len(done))


def test_every_other_button_does_what_it_says(page, served, tracker, channel):
    page.goto(served.url)
    # Given a buffer, a registration, a route, and a batch that holds what failed
    tracker.buffers.define("renders", 40)
    tracker.directory.register(Register("cars", "vin-1", channel()))
    tracker.routing.put(PutRoute("reports", {"source": ["cars"]}, topic="cars"))
    held = tracker.open(user_key="refunds", on_failure="hold")
    items = list(tracker.add(held.batch_id, 10))
    tracker.ack(items[2:])
    tracker.fail([Failure(item, "no such account") for item in items[:2]])
    tracker.close(held.batch_id)
    # When it is verified, and what it holds is given up, it completes
    open_batch(page, "refunds", "held")
    press(page, "Verify", "Verify", "Nothing disagrees.")
    page.get_by_role("link", name="Back to the batch").click()
    press(page, "Release", "Give up 2 held items", "2 held items")
    page.get_by_role("link", name="Back to the batch").click()
    completes(page)
    # When a limit is changed, a registration ended, and a route deleted, that is so
    go_to(page, "Buffers", "renders")
    press(page, "Change the limit", "Change the limit of renders", "60", limit="60")
    go_to(page, "Directory", "cars", "vin-1")
    press(page, "Deregister", "Deregister vin-1", "vin-1")
    go_to(page, "Routes", "reports")
    press(page, "Delete", "Delete the route reports", "is deleted")
    assert tracker.buffers.status("renders").buffer.limit == 60
    assert list(tracker.directory.members("cars")) == []
    assert "reports" not in [route.name for route in tracker.routing.page().routes]
    # And the log says that all was done
    go_to(page, "Log")
    expect(page.locator("table.log .result")).to_have_text(["done"] * 5)


def test_a_parked_target_is_told_again(page, served, tracker, channel, local_environment):
    # Given a batch whose target could not be told for a day, because its queue was gone
    gone = channel()
    told = tracker.open(user_key="told", on_end=[{"type": "sqs", "queue_url": gone}])
    tracker.sqs.delete_queue(QueueUrl=gone)
    tracker.close(told.batch_id)
    records = connect(Settings.from_env()).records

    def parked() -> bool:
        (kept,) = read_targets(records, told.batch_id, [0])
        return bool(kept.attempts) and change(records, told.batch_id, kept, state=TargetState.PARKED) is None

    eventually(parked, within=60)
    # When an operator has it told again
    page.goto(served.url)
    page.locator("#find").fill("told")
    page.locator("#find").press("Enter")
    page.locator("main").get_by_role("link", name="told", exact=True).click()
    press(page, "Tell targets again", "Tell 1 target again", "1 target is told again")
    # Then it is tried once more
    eventually(lambda: tracker.targets(told.batch_id)[0].attempts > 1, within=60)


def test_the_command_serves_it_with_the_callers_keys_and_shows_none(page, stack, caller, faults):
    # Given the console of the command, with the keys of a user in its environment
    keys = caller.get_credentials().get_frozen_credentials()
    environment = {
        "AWS_ACCESS_KEY_ID": keys.access_key,
        "AWS_SECRET_ACCESS_KEY": keys.secret_key,
        "AWS_DEFAULT_REGION": stack.region,
        "PATH": str(FANIN.parent),
        "PYTHONPATH": str(Path(fanin.__file__).parents[1]),
    }
    command = [FANIN, "--api-url", stack.api_url, "ui", "--no-browser"]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        # When its link is opened
        assert process.stderr is not None
        link = re.search(r"http://\S+", process.stderr.readline())
        assert link is not None
        page.goto(link[0])
        # Then the pages are there, and none has a key
        for part in page.get_by_role("navigation").get_by_role("link").all_text_contents():
            page.get_by_role("navigation").get_by_role("link", name=part).click()
            expect(page.locator("h1")).to_be_visible()
            source = page.content()
            assert keys.access_key not in source
            assert keys.secret_key not in source
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    # And it ends without a complaint
    assert "stopped" in said
    assert "Traceback" not in said, said
