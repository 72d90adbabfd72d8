"""Names of callers, and the keys that belong to them."""

from __future__ import annotations

import itertools

import pytest

from fanin.domain import limits
from fanin.domain.principals import MAX_NAME, NOBODY, IdempotencyKey, Principal, bounded_name, checked_name
from fanin.errors import InvalidRequest

ADA, BOB = Principal("ada", "iam ada"), Principal("bob", "iam bob")


def test_the_keys_of_callers_and_texts_have_names_of_their_own() -> None:
    keys = [IdempotencyKey.of(text, who) for text in ("a", "b", "a b") for who in (ADA, BOB, None)]
    assert all(one.other != other.other for one, other in itertools.combinations(keys, 2))
    # Not even a caller who knows how the names are made can ask for another's
    assert all(len(key.other) > limits.MAX_IDEMPOTENCY_KEY for key in keys)
    assert [key.names for key in keys] == [(key.text, key.other) for key in keys]


@pytest.mark.parametrize("who", [None, Principal("nightly"), Principal("")])
def test_a_name_alone_owns_nothing(who: Principal | None) -> None:
    assert IdempotencyKey.of("a", who) == IdempotencyKey.of("a")
    assert IdempotencyKey.of("a", who).owner == NOBODY


def test_a_row_is_for_its_owner() -> None:
    mine, theirs, nobodys = (IdempotencyKey.of("a", who) for who in (ADA, BOB, None))
    assert mine.may_use(mine.owner)
    assert not mine.may_use(theirs.owner)
    assert not mine.may_use(nobodys.owner)
    assert not nobodys.may_use(mine.owner)


def test_the_names_never_change() -> None:
    """They are in rows."""
    key = IdempotencyKey.of("run-7", Principal("x", "iam arn:aws:sts::123456789012:assumed-role/importer"))
    assert key.owner == "3fa2ab1953a328a7d7d6db37f362857a"
    assert key.other == (
        "caller/a64a59eabc02f74b9d4eba370d9dccb1c169b64c5d2d879868247074c21d3ac9"
        "16835b0dc95909289590907ede9142174f809bfb6c177d6ddbd3eab0c35a4b85"
    )


@pytest.mark.parametrize("text", ["", "x" * MAX_NAME, "ä" * (MAX_NAME // 2)])
def test_a_name_that_fits_stays_as_it_is(text: str) -> None:
    assert bounded_name(text) == checked_name(text) == text


@pytest.mark.parametrize("text", ["x" * (MAX_NAME + 1), "ä" * MAX_NAME, "x" + "€" * MAX_NAME])
def test_a_name_that_is_too_long_is_cut_or_refused(text: str) -> None:
    assert MAX_NAME - 3 <= len(bounded_name(text).encode()) <= MAX_NAME
    assert text.startswith(bounded_name(text).removesuffix("…"))
    with pytest.raises(InvalidRequest, match="opened_by must"):
        checked_name(text)


def test_half_a_surrogate_pair_is_replaced_or_refused() -> None:
    assert bounded_name("a\ud800") == "a?"
    assert IdempotencyKey.of("a\ud800").text == "a\ud800"  # whoever uses it is told
    with pytest.raises(InvalidRequest, match="surrogate"):
        checked_name("a\ud800")
