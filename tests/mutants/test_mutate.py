"""Mutants: what is changed, which are tried, and how one takes the place of its module."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

import pytest

from tests.mutants.__main__ import chosen, modules, obsolete, stages
from tests.mutants.mutate import mutants
from tests.mutants.running import PACKAGE, ROOT, Mutated


def names(source: str) -> list[str]:
    return [mutant.name for mutant in mutants(source, "some.py")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", "module: a < b → a <= b"),
        ("a and b", "module: a and b → a or b"),
        ("not a", "module: not a → a"),
        ("a + b", "module: a + b → a - b"),
        ("f(a)", "module: f(a) → pass"),
        ("a += b", "module: a += b → a -= b"),
        ("max(a, b)", "module: max(a, b) → min(a, b)"),
        ("if a: b", "module: a → not a"),
        ("a = 'text'", "module: 'text' → 'text-'"),
    ],
)
def test_one_small_thing_is_wrong(source, expected):
    assert expected in names(source)


def test_a_mutant_says_in_which_function_and_on_which_line_it_is():
    (mutant,) = mutants("class A:\n    def f(self, a):\n        return a", "some.py")
    assert (mutant.name, mutant.line) == ("A.f: return a → return None", 3)


def test_a_constant_that_is_returned_becomes_another_one_only():
    assert names("def f(): return False") == ["f: False → True"]
    assert names("def f(): return None") == []


def test_what_stands_there_twice_is_numbered():
    assert names("a = 1\nb = 1") == ["module: 1 → 2", "module: 1 → 2 (2)"]


def test_a_mutant_behaves_as_its_name_says_and_the_next_one_is_changed_in_its_own_place_only():
    found: dict[str, int] = {}
    for mutant in mutants("def f(a, b):\n    return a + b * 2", "some.py"):
        scope: dict[str, Any] = {}
        exec(mutant.code, scope)
        found[mutant.name] = scope["f"](5, 7)
    assert found == {
        "f: return a + b * 2 → return None": None,
        "f: a + b * 2 → a - b * 2": -9,
        "f: b * 2 → b // 2": 8,
        "f: b * 2 → b * 3": 26,
    }


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "a: list[1]",
        "def f(a: 1) -> 2: ...",
        "@d(slots=True)\nclass A: ...",
        "from a import b",
        "__all__ = ['a']",
        "T = TypeVar('T')",
        "A: TypeAlias = 'B' | None",
        "a = f'{b + 1}'",
        "if TYPE_CHECKING:\n    from a import b",
    ],
)
def test_what_no_test_could_notice_is_left_alone(source):
    assert names(source) == []


def test_an_error_may_be_left_out_but_its_text_stays():
    assert names("raise E('text')") == ["module: raise E('text') → pass"]


@pytest.mark.parametrize(
    ("module", "name"),
    [("domain/tree.py", "fanin.domain.tree"), ("app/ports/__init__.py", "fanin.app.ports")],
)
def test_a_mutant_is_imported_under_the_name_of_its_module(module, name):
    path = PACKAGE / module
    mutant = next(mutants(path.read_text(), str(path)))
    change = Mutated(path, mutant.code)
    spec = change.find_spec(name)
    assert change.find_spec("fanin.app.fresh") is None
    assert spec is not None
    assert spec.loader is change
    assert bool(spec.submodule_search_locations) is (path.name == "__init__.py")
    assert change.get_code(name) is mutant.code


def test_code_that_imports_a_package_gets_the_mutant():
    script = """
import sys
from tests.mutants.mutate import mutants
from tests.mutants.running import PACKAGE, Mutated
path = PACKAGE / "app/ports/__init__.py"
(mutant,) = (m for m in mutants(path.read_text(), str(path)) if m.name == "Defaults: 7 * 86400 → 8 * 86400")
sys.meta_path.insert(0, Mutated(path, mutant.code))
from fanin.app.ports import Defaults
from fanin.app.ports.batches import Activity
print(Defaults().closed_idle_ttl)
"""
    command = [sys.executable, "-c", script]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)

    assert told.stdout.strip() == str(8 * 86_400)


ROOM = "app/targets"
MODULE = "app/targets/records.py"


def names_of(place: str, sample: int | None = None) -> list[str]:
    options = argparse.Namespace(since=None, sample=sample, only="")
    return [mutant.name for _, found in chosen(place, options) for mutant in found]


def test_a_sample_has_as_many_mutants_as_asked_for_and_is_the_same_each_time():
    sample, every = names_of(ROOM, sample=20), names_of(ROOM)
    assert len(sample) == 20
    assert sample == names_of(ROOM, sample=20)
    assert set(sample) < set(every)
    assert set(every) > set(names_of(MODULE))


def test_an_equivalent_that_does_not_exist_any_more_is_wrong():
    (module,) = modules(MODULE)
    result = obsolete(module, [names_of(MODULE)[0], "f: a → b"])
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
