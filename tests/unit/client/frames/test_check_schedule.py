"""The schedule of a repeater's checks: waits that grow, and checks at once."""

from __future__ import annotations

import pytest

from fanin.adapters.backoff import Backoff
from fanin.client.frames.check_schedule import CheckSchedule


class Time:
    now = 100.0


@pytest.fixture
def time() -> Time:
    return Time()


def schedule(time: Time, *frames: int) -> CheckSchedule:
    """A schedule whose waits are 10, 20, 40, 40 seconds."""
    return CheckSchedule(frames, Backoff(base=10, cap=40, fraction=lambda: 1.0), lambda: time.now)


def checks(found: CheckSchedule, time: Time, seconds: int) -> list[float]:
    """Let time pass by the second; at which times a frame was due, from now."""
    began, due = time.now, []
    for second in range(seconds):
        time.now = began + second
        due += [second for _ in found.due()]
    return due


def test_a_frame_is_due_after_waits_that_grow(time: Time) -> None:
    found = schedule(time)
    found.add(7)
    assert checks(found, time, 160) == [10, 30, 70, 110, 150]


def test_a_wait_is_at_least_half_of_the_first(time: Time) -> None:
    found = CheckSchedule([], Backoff(base=10, cap=40, fraction=lambda: 0.0), lambda: time.now)
    found.add(7)
    assert checks(found, time, 12) == [5, 10]


def test_a_frame_that_is_hastened_is_due_at_once_and_its_waits_begin_anew(time: Time) -> None:
    found = schedule(time)
    found.add(7)
    found.add(8)
    assert checks(found, time, 31) == [10, 10, 30, 30]
    found.hasten(7)
    assert list(found.due()) == [7]
    found.hasten_all()
    assert list(found.due()) == [7, 8]
    assert checks(found, time, 22) == [20, 20]


def test_a_frame_that_is_forgotten_is_not_due(time: Time) -> None:
    found = schedule(time, 7, 8)
    found.forget(7)
    found.forget(9)
    assert (len(found), 7 in found, 8 in found) == (1, False, True)
    assert list(found.due()) == [8]


def test_frames_may_be_forgotten_and_hastened_while_they_are_gone_through(time: Time) -> None:
    found = schedule(time, 7, 8)
    for frame_id in found.due():
        found.hasten_all()
        found.forget(frame_id)
    assert len(found) == 0
