"""The simulation on two stores at once: the second one, which is not ours, must agree with memory in all."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from fanin.adapters.dynamodb.words import DynamoWords
from fanin.adapters.memory import FixedClock, Memory, OnCall
from fanin.app.ports import Ports
from fanin.app.ports.batches import Activity, Completion
from fanin.app.ports.words import Clear, ItemClaim, Tally, WordKey
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import Mode, State
from fanin.domain.tree import Tree
from fanin.errors import IdempotencyKeyReused
from tests.integration.given import new_batch
from tests.oracle.twin import Apart, on_second_store, twins
from tests.stateful.simulation import Simulation

pytestmark = pytest.mark.oracle
CALLERS = (None, Principal("ada", "iam ada"))
SEEDS = 2
"""Seeds for each width; one has some hundred accesses."""


def play(width: int, seed: int) -> Simulation:
    """Play one seed of the simulation on two stores."""

    def double(memory: Memory, on_call: OnCall) -> Ports:
        assert isinstance(memory.clock, FixedClock)
        return twins(memory, on_second_store(memory.clock, Tree(width)), on_call)

    simulation = Simulation(width, seed, double=double)
    simulation.play()
    return simulation


@pytest.mark.parametrize("width", [2, 3, 64])
def test_a_second_store_gives_every_answer_that_memory_gives(width):
    for seed in range(SEEDS):
        play(width, seed)


def test_stores_that_disagree_are_told_apart(monkeypatch):
    # Given a store on DynamoDB that says of one bit more that it was first
    honest = DynamoWords.clear
    monkeypatch.setattr(
        DynamoWords,
        "clear",
        lambda self, clears: [cleared._replace(first=cleared.first | 1) for cleared in honest(self, clears)],
    )
    # Then the twins notice
    with pytest.raises(Apart):
        list(map(partial(play, 2), range(SEEDS)))


HOUR = 3_600_000


def random_calls(rng: Random, ports: Ports, clock: FixedClock) -> None:
    """Make calls of every store that the simulation makes seldom, on few rows, so that they meet."""
    now, batch_id, name = clock.now(), rng.choice((8, 16, 24)), rng.choice(("a", "b", "ab"))
    seconds, activity = now // 1000, Activity(now - now % 720_000, now + rng.choice((0, 1)) * HOUR)
    until = rng.choice((seconds, seconds + 1, seconds + 5_000))
    table, space = rng.choice(((ports.records, "71"), (ports.directory, "fleet")))
    batches, n = ports.batches, rng.randint(1, 4)
    key, above = WordKey(7, 0, rng.randint(0, 1)), WordKey(7, rng.randint(0, 1), 2)
    total, mask = rng.randint(-9, 9), rng.randint(1, 7)
    claim = ItemClaim(key, rng.randint(0, 2), seconds, until, seconds + 9_000)
    row = batches.read([batch_id]).get(batch_id)
    some = rng.choice(tuple(State))
    calls: list[Callable[[], object]] = [
        lambda: table.put(space, name, {"n": n}, expires_at=until, if_version=rng.choice((None, 0, 1, 2))),
        lambda: table.put_all(space, {name: {"n": n}}, expires_at=until),
        lambda: table.delete(space, name, if_version=rng.choice((None, 1, 2))),
        lambda: table.read(space, ["a", "b", "a"]),
        lambda: table.page(space, prefix=rng.choice(("", "a")), limit=100),
        lambda: ports.words.claim([claim]),
        lambda: ports.words.clear([Clear(key, mask, until, failed=mask & rng.randint(0, 7))]),
        lambda: ports.words.clear([Clear(above, rng.randint(1, 7), until, carried=random_tallies(rng))]),
        lambda: ports.words.read_tallied([key, above]),
        lambda: (
            ports.words.read([key]),
            ports.words.read_failed([key]),
            ports.words.read_rows([key, above]),
        ),
        lambda: batches.create(replace(row, salt=rng.choice((row.salt, bytes(16))))),
        lambda: batches.allocate(batch_id, n, activity=activity, room=rng.choice((None, 5 - n))),
        lambda: batches.allocate_counted(batch_id, n, items=row.items, pending=0, activity=activity),
        lambda: batches.allocate_once(
            row, n, IdempotencyKey.of(rng.choice("xyz"), rng.choice(CALLERS)), activity=activity
        ),
        lambda: batches.rebound(batch_id, items=rng.choice((0, row.items)), pending=n),
        lambda: batches.close(batch_id, now=now, activity=rng.choice((None, activity))),
        lambda: batches.begin(batch_id, n, now=now, deadline=now + n, activity=activity),
        lambda: batches.postpone(batch_id, deadline=row.deadline or n, until=now + n, activity=activity),
        lambda: batches.count(batch_id, n, activity=activity, sums=(total,) * len(row.totals)),
        lambda: batches.touch(batch_id, activity),
        lambda: batches.page(some),
        lambda: batches.page_of_user_key(rng.choice(("", "k", "l")), limit=rng.choice((1, 100))),
        lambda: batches.due(now + HOUR // 2),
        lambda: batches.end(batch_id, some, now=now, sources=[State.CLOSED], quiet=row),
        lambda: batches.expire(batch_id, now=now),
        lambda: batches.end(
            batch_id,
            State.COMPLETE,
            now=now,
            sources=[State.CLOSED],
            done=Completion(0, False, dict.fromkeys(row.totals, total), rng.random() < 0.5),
        ),
    ]
    if row is None:
        mode, user_key = rng.choice(tuple(Mode)), rng.choice(("", "k"))
        batches.create(
            new_batch(
                batch_id,
                limit=rng.choice((None, 5)),
                mode=mode,
                user_key=user_key,
                totals=dict.fromkeys(rng.choice(((), ("rows",), ("rows", "bytes", "net", "pages"))), 0),
            )
        )
        return
    for call in rng.sample(calls, 5):
        call()
    clock.advance(rng.choice((0, 0, 1, 999, 1_000, 1_500_000)))


def random_tallies(rng: Random) -> dict[int, Tally]:
    """Tallies of words below, of a batch with totals or without."""
    sums = rng.choice(((), (rng.randint(-9, 9),) * 4))
    whole = rng.random() < 0.8
    return {at: Tally(rng.randint(0, 2), whole, sums) for at in range(3) if rng.random() < 0.8}


@pytest.mark.parametrize("seed", range(2))
def test_calls_at_random_are_answered_alike(seed):
    # Given stores of both kinds
    rng, clock = Random(seed), FixedClock()
    ports = twins(Memory(clock=clock), on_second_store(clock), lambda _call, _moment: None)
    # When they get the same calls, Then no answer differs
    for _ in range(150):
        with suppress(IdempotencyKeyReused):
            random_calls(rng, ports, clock)
