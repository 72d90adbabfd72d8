from __future__ import annotations

from itertools import pairwise

from fanin.console.samples import BATCHES, POINTS, Sample, Samples


def at(second: int, done: int) -> Sample:
    return Sample(second * 1000, done, 0, 1_000_000)


def test_samples_are_kept_in_order_and_repeats_move_the_last() -> None:
    # Given a batch that stands still for a while
    samples = Samples()
    for second, done in ((0, 0), (1, 5), (2, 5), (3, 5), (4, 5), (5, 9)):
        samples.record(1, at(second, done))
    # Then only the ends of that time are kept
    assert [(sample.at // 1000, sample.done) for sample in samples.of(1)] == [(0, 0), (1, 5), (4, 5), (5, 9)]


def test_what_is_done_stays_done_although_some_samples_are_bounds() -> None:
    samples = Samples()
    for second, done in ((0, 700), (1, 640), (2, 900)):
        samples.record(1, at(second, done))
    assert [sample.done for sample in samples.of(1)] == [700, 700, 900]


def test_a_clock_that_goes_back_adds_nothing() -> None:
    samples = Samples()
    for second in (5, 3, 5):
        samples.record(1, at(second, second))
    assert len(samples.of(1)) == 1


def test_a_day_of_samples_stays_bounded_and_spans_the_day() -> None:
    samples = Samples()
    for second in range(86_400):
        samples.record(1, at(second, second))
    kept = samples.of(1)
    assert len(kept) <= POINTS
    assert (kept[0].at, kept[-1].at) == (0, 86_399_000)
    gaps = [after.at - before.at for before, after in pairwise(kept)]
    assert max(gaps) <= 5 * 86_400_000 / POINTS


def test_only_some_batches_have_samples() -> None:
    samples = Samples()
    for batch_id in range(BATCHES + 1):
        samples.record(batch_id, at(0, 0))
    assert samples.of(0) == ()
    assert samples.of(BATCHES)


def test_the_rate_is_that_of_the_last_minute() -> None:
    samples = Samples()
    assert samples.rate(1) is None
    samples.record(1, at(0, 0))
    assert samples.rate(1) is None
    samples.record(1, at(100, 1000))
    assert samples.rate(1) == 10  # nothing else was sampled
    samples.record(1, at(130, 1600))
    assert samples.rate(1) == 20
