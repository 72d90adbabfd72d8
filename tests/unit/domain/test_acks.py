"""Acknowledgements: what is left out takes its default, and values do not change."""

from __future__ import annotations

import pytest

from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt, Result, dead_letter_reason, each, join
from fanin.domain.batch import State


def test_a_dead_letter_says_how_often_it_was_received_and_from_which_queue() -> None:
    assert dead_letter_reason(5, "work-dlq") == "dead letter: received 5 times from work-dlq"


def test_what_is_left_out_takes_its_default() -> None:
    assert ItemRange("1:g") == ItemRange("1:g", start=0, stop=None)
    assert Failure("1:g:0") == Failure("1:g:0", "", None, 0, "", {})
    assert Receipt(1, "mine", State.OPEN) == Receipt(1, "mine", State.OPEN, False, 0, (), 0, 0, 0)


def test_one_request_names_all_that_several_name_in_their_order() -> None:
    # Given requests of every kind, of which two name the same item
    one = Acks(["a", "b"], [ItemRange("1:g")], [Count(1, 2)], [Failure("x", "torn")])
    two = Acks(["a"], counts=[Count(1, 3)], failures=[Failure("y")])

    # When they are joined
    joined = join(iter([one, Acks(), two]))

    # Then nothing is missing, and nothing is merged
    assert joined == Acks(
        ["a", "b", "a"], [ItemRange("1:g")], [Count(1, 2), Count(1, 3)], [Failure("x", "torn"), Failure("y")]
    )


@pytest.mark.parametrize(
    "acks",
    [
        Acks(["7:g:1"]),
        Acks(ranges=[ItemRange("7:g")]),
        Acks(counts=[Count(7, 1)]),
        Acks(failures=[Failure("7:g:1")]),
    ],
)
def test_an_acknowledgement_knows_whether_it_names_anything_and_of_which_batches(acks: Acks) -> None:
    assert not acks.empty
    assert acks.batches == {7}
    assert join([acks, Acks(["8:g:0", "nonsense", "9" * 5_000])]).batches == {7, 8}


def test_an_acknowledgement_of_empty_lists_is_empty() -> None:
    assert Acks([], [], [], []).empty
    assert Acks().batches == set()


def test_equal_ranges_counts_and_failures_are_one_in_a_set() -> None:
    twice = [ItemRange("1:g", 0, 3), Count(1, 2), Failure("1:g:0", "broken"), Result("1:g:0", {"rows": 1})]

    assert len({*twice, *twice}) == 4


def test_a_request_is_taken_apart_and_joined_again() -> None:
    acks = Acks(["1:g:0", "1:g:1"], [ItemRange("1:g")], [Count(1, 2)], [Failure("1:g:0")], [Result("1:g:2")])
    parts = each(acks)
    assert len(parts) == 6
    assert join(parts) == acks
