"""Which mutants are tried: all of a room, a sample, or those with a text in their names."""

from __future__ import annotations

import argparse

import pytest

from tests.mutants.__main__ import chosen, modules, obsolete, stages

ROOM = "app/frames"
MODULE = "app/frames/notices.py"


def names(place: str, sample: int | None = None, only: str = "") -> list[str]:
    options = argparse.Namespace(since=None, sample=sample, only=only)
    return [mutant.name for _, found in chosen(place, options) for mutant in found]


def test_without_options_all_mutants_of_all_modules_of_a_room_are_tried() -> None:
    found = dict(chosen(ROOM, argparse.Namespace(since=None, sample=None, only="")))

    with_mutants = [module for module in modules(ROOM) if names(module.as_posix())]
    assert list(found) == with_mutants
    assert [mutant.name for mutant in found[modules(MODULE)[0]]] == names(MODULE)


def test_a_sample_has_as_many_mutants_as_asked_for_and_is_the_same_each_time() -> None:
    sample = names(ROOM, sample=20)

    assert len(sample) == 20
    assert sample == names(ROOM, sample=20)
    assert set(sample) <= set(names(ROOM))


def test_a_sample_that_is_larger_than_the_room_is_the_room() -> None:
    assert names(MODULE, sample=10_000) == names(MODULE)


def test_a_text_picks_the_mutants_with_it_in_their_names() -> None:
    whole = names(MODULE)

    assert names(MODULE, only=whole[0]) == [name for name in whole if whole[0] in name]


def test_a_place_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"there is no domain/nothing\.py in"):
        modules("domain/nothing.py")


def test_an_equivalent_that_does_not_exist_any_more_is_wrong() -> None:
    (module,) = modules(MODULE)

    result = obsolete(module, [names(MODULE)[0], "f: a → b"])

    assert result.wrong == ["there is no such mutant: f: a → b"]


def test_the_tests_of_a_module_come_first_then_those_of_its_room_then_those_from_outside() -> None:
    (module,) = modules("app/ledger/walk.py")

    assert stages(module) == [
        ("tests/unit/app/ledger/test_walk.py",),
        ("tests/unit/app/ledger",),
        (
            "tests/unit/app/test_services.py",
            "tests/stateful/test_machine.py",
            "tests/behaviour/test_batches.py",
        ),
    ]
