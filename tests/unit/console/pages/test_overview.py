from collections import Counter
from datetime import timedelta

import pytest

from fanin import Failure
from fanin.console.pages.overview import COUNT_EVERY_MS, LOOKED_AT, SHOWN, overview
from fanin.console.state import Console
from fanin.domain.batch import State
from tests.unit.console.looking import words


@pytest.fixture
def shown(browse):
    """Reads what the page shows."""
    console: Console = browse().app.state.console
    return lambda: overview(console)


def test_counts_of_states_are_whole_and_of_too_many_at_least(service, browse, shown, monkeypatch):
    # Given more open batches than a listing reads, and one that is complete
    for _ in range(LOOKED_AT + 3):
        service.tracker.open()
    with service.tracker.batch() as batch:
        group = batch.add(2)
    service.tracker.ack(group)
    counts = {str(state): count for state, count in shown().counts.items()}
    assert counts["open"] == (LOOKED_AT + 3, False)
    assert counts["complete"] == (1, False)
    # And of more than the index shows at once the page says so
    monkeypatch.setattr(service._runtime.memory.batches, "count_in", lambda _: (123_456, True))
    assert "at least 123,456 complete" in words(browse().get("/").text)


def test_who_watches_has_batches_counted_at_times(service, browse):
    console = browse().app.state.console
    overview(console)
    service.tracker.open()
    assert overview(console, fresh=False).counts[State.OPEN] == (0, False)
    service.advance(timedelta(milliseconds=COUNT_EVERY_MS))
    assert overview(console, fresh=False).counts[State.OPEN] == (1, False)


def test_what_is_wrong_comes_first_and_has_its_button(service, shown, browse):
    # Given a batch that stalls, one that is well, and more than the page shows that failed later
    tracker = service.tracker
    tracker.add(tracker.open(user_key="payroll", stall_after=timedelta(minutes=15)).batch_id, 5)
    service.advance(timedelta(hours=1))
    tracker.add(tracker.open(user_key="well").batch_id, 5)
    for _ in range(SHOWN + 4):
        with tracker.batch() as batch:
            tracker.fail([Failure(batch.add(1)[0], "no price")])
    found = shown()
    # Then the stalled one is the first, and the counts are whole
    listed = len(found.attention)  # as many as one request may read
    assert [said.trouble for _, said in found.attention] == ["stalled", *["failed"] * (listed - 1)]
    assert SHOWN / 2 < listed <= SHOWN
    assert found.troubles == {"stalled": "1", "failed": str(SHOWN + 4)}
    assert [row.batch.user_key for row in found.running] == ["well"]
    first = found.attention[0][0].batch.batch_id
    page = browse(write=True).get("/").text
    assert page.index("payroll") < page.index("/actions/redrive") < page.index("well")
    assert f'href="/batches/{first}/why"' in page
    # And the rest has a page
    assert "no price" not in page
    assert (
        browse().get(f"/attention?cursor={found.cursor}").text.count("1 failed item, not redriven")
        == SHOWN + 5 - listed
    )


def test_the_page_makes_a_bounded_number_of_calls(service, browse):
    # Given many batches and buffers
    for number in range(3 * SHOWN):
        group = service.tracker.add(service.tracker.open().batch_id, 100)
        if number % 2:
            service.tracker.fail([Failure(group[0], "x")])
        service.tracker.buffers.define(f"buffer-{number}", 5)
    calls: Counter[str] = Counter()
    service.on_call = lambda access, when: calls.update([access] if when == "before" else [])
    page = browse().get("/")
    # Then it lists what lives, asks for as many batches as it shows, and stays small
    assert calls["batches.page"] == 2
    assert calls["words.read_tallied"] <= 2 * 2 * SHOWN
    assert len(page.content) < 100_000


def test_an_empty_stack_says_what_makes_a_batch(service, browse):
    page = browse().get("/").text
    assert "There are no batches yet: <code>fanin open</code>" in page
    service.tracker.open()
    assert "no batches yet" not in browse().get("/").text
