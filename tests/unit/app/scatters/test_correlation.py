"""Correlation ids: who holds one, for how long, and who may take it over."""

from dataclasses import replace
from uuid import UUID

import pytest

from fanin.app.ports.records import Record
from fanin.app.scatters import correlation
from fanin.domain.batch import Batch, OpenBatch
from fanin.errors import CorrelationIdAlive, Throttled
from tests.lost_answers import LostAnswers
from tests.unit.app.conftest import World


def drafted(world: World, batch_id: int = 7) -> Batch:
    """A batch that is about to be opened."""
    now = world.clock.at
    return Batch(
        batch_id=batch_id,
        salt=b"s" * 16,
        created_at=now,
        touched_at=now,
        expires_at=now // 1000 + 86_400,
        open_idle_ttl=600,
        closed_idle_ttl=600,
    )


def opened(world: World) -> Batch:
    return world.ledger.open(OpenBatch())


def claim(world: World, batch: Batch) -> int:
    return correlation.claim(world.ports, "mine", batch)


def held(world: World) -> Record | None:
    return world.ports.directory.read(correlation.NAMESPACE, ["mine"]).get("mine")


def holder(world: World) -> int | None:
    record = held(world)
    return None if record is None else record.value["batch_id"]


def test_a_derived_id_follows_from_the_salt_alone_and_does_not_tell_it(world):
    made = correlation.derived_from(drafted(world, 7))

    assert correlation.derived_from(drafted(world, 8)) == made
    assert correlation.derived_from(replace(drafted(world, 7), salt=b"t" * 16)) != made
    assert str(UUID(made)) == made
    assert UUID(made).bytes != drafted(world).salt


class TestClaim:
    @pytest.mark.parametrize(("later", "renewed"), [(0, 0), (29_999, 0), (30_000, 30_000)])
    def test_a_repeat_in_time_changes_nothing_and_a_late_one_takes_the_id_anew(self, world, later, renewed):
        since = claim(world, drafted(world))
        before = held(world)
        world.clock.advance(later)

        assert claim(world, drafted(world)) == since + renewed
        assert holder(world) == 7
        assert (held(world) == before) is (not renewed)

    def test_an_id_is_kept_for_a_batch_that_is_not_open_yet_for_a_minute(self, world):
        claim(world, drafted(world, 7))
        world.clock.advance(59_999)
        with pytest.raises(CorrelationIdAlive):
            claim(world, drafted(world, 8))
        assert holder(world) == 7

        world.clock.advance(1)
        claim(world, drafted(world, 8))
        assert holder(world) == 8

    def test_an_id_is_kept_for_as_long_as_its_batch_lives(self, world):
        batch = opened(world)
        claim(world, batch)
        world.clock.advance(3_600_000)

        with pytest.raises(CorrelationIdAlive) as refused:
            claim(world, drafted(world, 8))

        assert str(refused.value) == (
            f"scatter {batch.batch_id} of correlation id 'mine' has not ended;"
            " wait for it, cancel it, or use another"
        )
        assert holder(world) == batch.batch_id

    def test_who_is_overtaken_while_taking_over_an_id_is_refused(self, world):
        # Given a holder that has ended, and another scatter that is faster to take its id
        ended, faster = opened(world), opened(world)
        claim(world, ended)
        world.ledger.cancel(ended.batch_id)
        world.at("batches.read", "after", lambda: claim(world, faster))

        with pytest.raises(CorrelationIdAlive, match=str(faster.batch_id)):
            claim(world, drafted(world, 9))
        assert world.happened
        assert holder(world) == faster.batch_id

    @pytest.mark.parametrize("others", [4, 5])
    def test_who_is_overtaken_five_times_is_told_to_try_again(self, world, others):
        # Given others who take the id just before each try, and die
        def take() -> None:
            world.ports.directory.put(
                correlation.NAMESPACE, "mine", {"batch_id": 1, "created_at": 0}, expires_at=2**40
            )

        for _ in range(others):
            world.at("directory.put", "before", take)
            world.at("directory.put", "before", lambda: None)  # the put of the other itself

        if others < correlation.TRIES:
            assert claim(world, drafted(world)) == world.clock.at
        else:
            with pytest.raises(
                Throttled, match="other calls are claiming correlation id 'mine'; try again"
            ) as refused:
                claim(world, drafted(world))
            assert refused.value.retry_after == 1
        assert world.happened

    @pytest.mark.parametrize("renewal", [False, True])
    def test_a_claim_or_a_renewal_whose_answer_was_lost_is_this_batch_s_own(self, world, renewal):
        # Given others who want the id while the claim is repeated
        batch = drafted(world)
        if renewal:
            claim(world, batch)
            world.clock.advance(30_000)

        def other() -> None:
            with pytest.raises(CorrelationIdAlive):
                claim(world, drafted(world, 8))

        LostAnswers(world.memory).lose("directory.put", other)

        assert claim(world, batch) == world.clock.at
        assert holder(world) == 7

    def test_another_scatter_that_drew_the_same_batch_id_is_refused(self, world):
        claim(world, drafted(world))

        with pytest.raises(CorrelationIdAlive):
            claim(world, replace(drafted(world), salt=b"t" * 16))

    def test_an_id_that_is_freed_while_it_is_taken_over_is_taken_as_a_free_one(self, world):
        # Given a holder that has ended, and that frees its id just before another takes it over
        batch = opened(world)
        claim(world, batch)
        world.ledger.cancel(batch.batch_id)
        world.at("directory.put", "before", lambda: None)
        world.at("directory.put", "before", lambda: correlation.free(world.ports, "mine", batch.batch_id))

        claim(world, drafted(world, 8))

        assert world.happened
        assert holder(world) == 8


class TestFree:
    def test_nobody_lets_go_of_the_id_of_another(self, world):
        claim(world, drafted(world, 7))
        before = held(world)

        correlation.free(world.ports, "mine", 8)

        assert held(world) == before

    def test_an_id_that_another_took_while_the_answer_was_lost_stays(self, world):
        # Given an end that frees the id, loses the answer, and repeats itself after another has claimed it
        batch, other = opened(world), opened(world)
        claim(world, batch)
        world.ledger.cancel(batch.batch_id)
        world.clock.advance(1)
        answers = LostAnswers(world.memory)
        answers.lose("directory.delete", lambda: claim(world, other))

        correlation.free(world.ports, "mine", batch.batch_id)

        assert answers.repeated == {"directory.delete": 1}
        assert holder(world) == other.batch_id


def test_check_in_time_a_batch_may_be_opened_within_half_a_minute(world):
    since = world.clock.at
    correlation.check_in_time(world.ports, since)
    world.clock.advance(29_999)
    correlation.check_in_time(world.ports, since)

    world.clock.advance(1)
    with pytest.raises(Throttled, match="writing the recipients took too long; try again") as refused:
        correlation.check_in_time(world.ports, since)
    assert refused.value.retry_after == 1
