"""Names of callers, and the keys that belong to them."""

import pytest

from fanin.domain import limits
from fanin.domain.access import MAX_NAME, NOBODY, IdempotencyKey, Principal, bounded_name, checked_name
from fanin.errors import InvalidRequest

ADA, BOB = Principal("ada", "iam ada"), Principal("bob", "iam bob")


def test_the_keys_of_callers_and_texts_have_names_of_their_own():
    keys = [IdempotencyKey.of(text, who) for text in ("a", "b", "a b", "a ") for who in (ADA, BOB, None)]
    assert len({key.name for key in keys}) == len(keys)


@pytest.mark.parametrize("who", [None, Principal("nightly"), Principal("")])
def test_a_name_alone_owns_nothing(who):
    assert IdempotencyKey.of("a", who) == IdempotencyKey.of("a")
    assert IdempotencyKey.of("a", who).owner == NOBODY


def test_the_names_never_change():
    """They are in rows."""
    key = IdempotencyKey.of("run-7", Principal("x", "iam arn:aws:sts::123456789012:assumed-role/importer"))
    assert key.owner == "3fa2ab1953a328a7d7d6db37f362857a"
    assert key.name == "3dae16aad382abe188573e1b5b0ad0183c7304a0b5290f647eb535e54a95928b"


@pytest.mark.parametrize("text", ["", "x" * (limits.MAX_IDEMPOTENCY_KEY + 1), "a\ud800"])
def test_a_text_that_cannot_be_a_key_is_refused(text):
    with pytest.raises(InvalidRequest, match="Idempotency-Key"):
        IdempotencyKey.of(text).check()


@pytest.mark.parametrize("text", ["", "x" * MAX_NAME, "ä" * (MAX_NAME // 2)])
def test_a_name_that_fits_stays_as_it_is(text):
    assert bounded_name(text) == checked_name(text) == text


@pytest.mark.parametrize("text", ["x" * (MAX_NAME + 1), "ä" * MAX_NAME, "x" + "€" * MAX_NAME])
def test_a_name_that_is_too_long_is_cut_or_refused(text):
    assert MAX_NAME - 3 <= len(bounded_name(text).encode()) <= MAX_NAME
    assert text.startswith(bounded_name(text).removesuffix("…"))
    with pytest.raises(InvalidRequest, match="opened_by must"):
        checked_name(text)


def test_half_a_surrogate_pair_is_replaced_or_refused():
    assert bounded_name("a\ud800") == "a?"
    with pytest.raises(InvalidRequest, match="surrogate"):
        checked_name("a\ud800")
