"""How far the batches of a page are, and that over time as a plot."""

import pytest

from fanin import Count
from fanin.console.pages.progress import HEIGHT, TABLE_ROWS, WIDTH, Row, axis, plot, rows_of, some
from fanin.console.samples import Sample
from fanin.console.state import Console
from fanin.domain.reports import Progress
from fanin.errors import AccessDenied, BatchGone, Throttled
from tests.unit.console.calls import Calls


@pytest.fixture
def console(browse) -> Console:
    found: Console = browse().app.state.console
    return found


def test_a_live_batch_is_asked_how_far_it_is_and_its_rate_comes_with_time(service, console):
    # Given a batch of which 10 items a second are done
    with service.tracker.batch() as opened:
        group = list(opened.add(100))
    service.tracker.ack(group[:20])
    (row,) = rows_of(console, [service.tracker.status(opened.id).batch])
    assert (row.done, row.exact, row.rate, row.left) == (20, True, None, None)
    # When it is looked at again three seconds later
    service.clock.sleep(3)
    service.tracker.ack(group[20:50])
    (row,) = rows_of(console, [service.tracker.status(opened.id).batch])
    # Then its rate and the time left are known
    assert (row.done, row.rate, row.left) == (50, 10, 5)


def test_an_ended_batch_is_not_asked(service, console):
    with service.tracker.batch() as opened:
        group = opened.add(3)
    service.tracker.ack(group)
    batch = service.tracker.status(opened.id).batch
    calls: list[str] = []
    service.on_call = lambda access, when: calls.append(access)
    assert rows_of(console, [batch]) == [Row(batch, 3)]
    assert not calls


def test_of_a_cancelled_batch_nobody_has_counted_what_is_done(service, console):
    group = service.tracker.add(service.tracker.open().batch_id, 3)
    service.tracker.ack(group[:1])
    batch = service.tracker.cancel(group.batch_id)
    assert rows_of(console, [batch])[0].done is None


def test_an_estimated_batch_says_what_it_has_counted(service, console):
    batch = service.tracker.open(mode="estimated")
    service.tracker.add(batch.batch_id, 10)
    service.services.ledger.mark([Count(batch.batch_id, 4)]).whole()
    (row,) = rows_of(console, [service.tracker.cancel(batch.batch_id)])
    assert (row.done, row.exact) == (4, False)


def test_a_batch_that_was_removed_meanwhile_does_not_spoil_the_list(service, console):
    batch = service.tracker.open()
    service.tracker.add(batch.batch_id, 3)
    batch = service.tracker.status(batch.batch_id).batch

    def gone(access: str, when: str) -> None:
        if access.startswith("batches.") and when == "before":
            raise BatchGone("removed")

    service.on_call = gone
    assert rows_of(console, [batch]) == [Row(batch, None)]


@pytest.mark.parametrize("why", [AccessDenied("not this one"), ValueError("damaged")])
def test_a_batch_that_cannot_be_read_hides_no_other(service, browse, why):
    # Given two batches, of which one cannot be asked how far it is
    bad = service.tracker.open(user_key="bad")
    for batch in (bad, service.tracker.open(user_key="good")):
        service.tracker.add(batch.batch_id, 8)

    def answer(progress: Progress) -> Progress:
        if progress.batch.batch_id == bad.batch_id:
            raise why
        return progress

    Calls(service, {"ledger.status": answer})
    # Then the overview and the list show both, and that one as not counted
    for page in ("/", "/batches"):
        said = browse().get(page).text
        assert "0 of 8" in said
        assert said.count("counted on its page") == 1


def test_an_overloaded_service_is_not_shown_as_batches_that_cannot_be_read(service, browse):
    service.tracker.add(service.tracker.open().batch_id, 8)

    def busy(_: Progress) -> Progress:
        raise Throttled("busy")

    Calls(service, {"ledger.status": busy})
    assert browse().get("/batches").status_code == 503


def points(text: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in text.split())]


def test_one_sample_makes_no_line():
    assert plot([]) is None
    assert plot([Sample(0, 1, 0, 10)]) is None


def test_a_line_goes_from_the_first_sample_to_the_last():
    # Given a batch of which half was done at half the time
    drawn = plot([Sample(1_000, 0, 0, 100), Sample(2_000, 50, 0, 100), Sample(3_000, 100, 0, 100)])
    # Then its line rises straight, from the lower left to the upper right
    assert drawn is not None
    (done,) = drawn.lines
    assert points(done.points) == [(0, HEIGHT), (WIDTH / 2, HEIGHT / 2), (WIDTH, 0)]
    assert (done.low, done.high, done.first, done.last) == (0, 100, 0, 100)
    assert (drawn.begin, drawn.middle, drawn.end, drawn.seconds) == (1_000, 2_000, 3_000, 2.0)


def test_failures_have_a_line_of_their_own_if_there_are_any():
    drawn = plot([Sample(0, 500, 0, 1_000), Sample(9, 600, 3, 1_000)])
    assert drawn is not None
    assert [(line.name, line.low, line.high) for line in drawn.lines] == [
        ("done", 500, 600),
        ("failed", 0, 3),
    ]


@pytest.mark.parametrize(
    ("least", "most"),
    [
        (0, 0),
        (0, 1),
        (5, 5),
        (0, 997),
        (10**9 - 1, 10**9),
        (399_769_600, 399_769_600),
        (501, 640),
        (1, 2**40),
    ],
)
def test_an_axis_holds_all_its_values(least, most):
    low, high = axis(least, most)
    assert 0 <= low <= least <= most <= high
    assert low < high


def test_an_axis_of_a_line_far_above_0_begins_near_it():
    assert axis(980_100, 980_900) == (980_100, 980_900)
    assert axis(980_123, 981_456) == (980_000, 982_000)
    assert axis(100, 981_456) == (0, 990_000)
    assert axis(640, 640) == (0, 640)  # it stands still


def test_a_line_says_whether_three_digits_tell_its_ends_apart():
    near = plot([Sample(0, 399_769_600, 0, 10**9), Sample(9, 399_769_700, 0, 10**9)])
    far = plot([Sample(0, 100, 0, 10**9), Sample(9, 399_769_700, 0, 10**9)])
    assert near is not None
    assert far is not None
    assert not near.lines[0].short
    assert far.lines[0].short


def test_a_table_has_some_samples_with_the_first_and_the_last():
    samples = [Sample(at, at, 0, 240) for at in range(240)]
    rows = some(samples, TABLE_ROWS)
    assert len(rows) == TABLE_ROWS
    assert (rows[0], rows[-1]) == (samples[0], samples[-1])
    assert list(rows) == sorted(rows)
    assert some(samples[:3], TABLE_ROWS) == tuple(samples[:3])
