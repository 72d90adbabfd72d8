"""Which mutants are tried, and by which tests."""

import argparse

from tests.mutants.__main__ import chosen, modules, obsolete, stages

ROOM = "app/targets"
MODULE = "app/targets/records.py"


def names(place: str, sample: int | None = None) -> list[str]:
    options = argparse.Namespace(since=None, sample=sample, only="")
    return [mutant.name for _, found in chosen(place, options) for mutant in found]


def test_a_sample_has_as_many_mutants_as_asked_for_and_is_the_same_each_time():
    sample, every = names(ROOM, sample=20), names(ROOM)

    assert len(sample) == 20
    assert sample == names(ROOM, sample=20)
    assert set(sample) < set(every)
    assert set(every) > set(names(MODULE))


def test_an_equivalent_that_does_not_exist_any_more_is_wrong():
    (module,) = modules(MODULE)

    result = obsolete(module, [names(MODULE)[0], "f: a → b"])

    assert result.wrong == ["there is no such mutant: f: a → b"]


def test_the_tests_of_a_module_come_first_then_those_of_its_room_then_those_from_outside():
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
