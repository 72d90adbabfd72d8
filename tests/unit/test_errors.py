"""The tree of errors: drawn in the docstring as it is, with a code of its own for each class."""

from __future__ import annotations

import inspect
import re

import pytest

from fanin import errors
from fanin.errors import FaninError, SendFailed, Throttled

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, FaninError)]


def drawn() -> list[tuple[str, str]]:
    """(class, parent) as the module's docstring draws them."""
    found: list[tuple[str, str]] = []
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"    (?P<branches>[ │├└─]*)(?P<name>[A-Z][A-Za-z]+)(?:  |$)", line):
            depth = len(match["branches"]) // 4
            above[depth:] = [match["name"]]
            found.append((match["name"], above[depth - 1] if depth else "Exception"))
    return found


def test_the_docstring_draws_every_class_under_its_parent() -> None:
    assert sorted(drawn()) == sorted((cls.__name__, cls.__base__.__name__) for cls in CLASSES)


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [cls.code for cls in CLASSES]

    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", code) for code in codes)


@pytest.mark.parametrize(
    "cls", [cls for cls in CLASSES if cls is not FaninError], ids=lambda cls: cls.__name__
)
def test_a_code_is_the_name_of_its_class(cls: type[FaninError]) -> None:
    assert cls.code == re.sub("(?<!^)(?=[A-Z])", "-", cls.__name__).lower()


def test_what_may_succeed_later_is_retryable() -> None:
    assert {cls.__name__ for cls in CLASSES if cls.retryable} == {
        "BufferFull",
        "LimitReached",
        "ServiceUnavailable",
        "Throttled",
    }


def test_an_error_says_how_long_to_wait_if_it_knows() -> None:
    error = Throttled("slow down", retry_after=5)

    assert (str(error), error.retry_after) == ("slow down", 5)
    assert Throttled("slow down").retry_after is None


def test_items_that_were_not_sent_are_a_copy() -> None:
    items = {"1:2:3": "too large"}
    error = SendFailed("some were not sent", items=items)
    items.clear()

    assert error.items == {"1:2:3": "too large"}
