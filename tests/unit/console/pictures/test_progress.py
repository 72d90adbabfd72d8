from __future__ import annotations

import pytest

from fanin.console.live.samples import Sample
from fanin.console.pictures.progress import HEIGHT, ROWS, WIDTH, axis, plot, some


def points(text: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in text.split())]


def test_one_sample_makes_no_line() -> None:
    assert plot([]) is None
    assert plot([Sample(0, 1, 0, 10)]) is None


def test_a_line_goes_from_the_first_sample_to_the_last() -> None:
    # Given a batch of which half was done at half the time
    drawn = plot([Sample(1_000, 0, 0, 100), Sample(2_000, 50, 0, 100), Sample(3_000, 100, 0, 100)])
    # Then its line rises straight, from the lower left to the upper right
    assert drawn is not None
    (done,) = drawn.lines
    assert points(done.points) == [(0, HEIGHT), (WIDTH / 2, HEIGHT / 2), (WIDTH, 0)]
    assert (done.low, done.high, done.first, done.last) == (0, 100, 0, 100)
    assert (drawn.begin, drawn.middle, drawn.end, drawn.seconds) == (1_000, 2_000, 3_000, 2.0)


def test_failures_have_a_line_of_their_own_if_there_are_any() -> None:
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
def test_an_axis_holds_all_its_values(least: int, most: int) -> None:
    low, high = axis(least, most)
    assert 0 <= low <= least <= most <= high
    assert low < high


def test_an_axis_of_a_line_far_above_0_begins_near_it() -> None:
    assert axis(980_100, 980_900) == (980_100, 980_900)
    assert axis(980_123, 981_456) == (980_000, 982_000)
    assert axis(100, 981_456) == (0, 990_000)
    assert axis(640, 640) == (0, 640)  # it stands still


def test_a_line_says_whether_three_digits_tell_its_ends_apart() -> None:
    near = plot([Sample(0, 399_769_600, 0, 10**9), Sample(9, 399_769_700, 0, 10**9)])
    far = plot([Sample(0, 100, 0, 10**9), Sample(9, 399_769_700, 0, 10**9)])
    assert near is not None
    assert far is not None
    assert not near.lines[0].short
    assert far.lines[0].short


def test_a_table_has_some_samples_with_the_first_and_the_last() -> None:
    samples = [Sample(at, at, 0, 240) for at in range(240)]
    rows = some(samples, ROWS)
    assert len(rows) == ROWS
    assert (rows[0], rows[-1]) == (samples[0], samples[-1])
    assert list(rows) == sorted(rows)
    assert some(samples[:3], ROWS) == tuple(samples[:3])
