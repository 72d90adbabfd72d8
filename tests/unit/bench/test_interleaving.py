"""Many processes in virtual time, whose order a seed decides."""

from __future__ import annotations

import pytest

from bench.interleaving import Interleaving
from bench.world import World
from fanin.app.ports.words import WordKey

KEY = WordKey(1, 0, 0)


def course(seed):
    """The order in which three actors reach a row, three times each."""
    schedule = Interleaving(seed)
    world = World(schedule.on_call)
    reached = []

    def actor(number):
        def act():
            for _ in range(3):
                world.memory.words.read([KEY])
                reached.append(number)

        return act

    schedule.run(actor(number) for number in range(3))
    return reached


def test_the_seed_decides_who_comes_when():
    assert course(1) == course(1)
    assert sorted(course(1)) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len({tuple(course(seed)) for seed in range(10)}) > 1


def test_an_error_of_an_actor_is_not_lost():
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Interleaving(1).run([fail])


def test_a_schedule_can_be_run_again():
    schedule, ran = Interleaving(1), []
    schedule.run([lambda: ran.append(1)])
    schedule.run([lambda: ran.append(2)])
    assert ran == [1, 2]
