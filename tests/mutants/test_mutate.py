"""Mutants: what is changed, what is left alone, and how a mutant is named."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mutants.mutate import mutants


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
