"""Descriptions for readers of JSON, taken from docstrings for readers of Python."""

from __future__ import annotations

from fanin.entry.http.docstrings import described, summary


class Parcel:
    """What is sent.

    It has more to say here.

    Attributes:
        sent_at: when it was sent, ms since the epoch; None while it waits, which may be
            a long time.
        ``quoted``: is no name.
        fragile: True if ``handle`` must be careful.

    Raises:
        Lost: it never arrives.
    """


class Letter:
    """A parcel, thinner.

    Attributes:
        fragile: always False.
        pages: how many
    """


def test_attributes_are_described_in_terms_of_json() -> None:
    assert described([Parcel]) == {
        "sent_at": "When it was sent; null while it waits, which may be a long time.",
        "fragile": "True if `handle` must be careful.",
    }


def test_the_first_class_that_names_an_attribute_decides() -> None:
    assert described([Letter, Parcel])["fragile"] == "Always false."
    assert set(described([Letter, Parcel])) == {"sent_at", "fragile", "pages"}
    assert described([int]) == {}


def test_the_summary_is_the_first_paragraph() -> None:
    assert summary(Parcel) == "What is sent."
    assert summary(type("Bare", (), {})) == ""
