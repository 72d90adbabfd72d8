"""Which failures an action is about: errors and ranges through an address and back."""

from urllib.parse import parse_qsl, urlencode

import pytest
from starlette.datastructures import ImmutableMultiDict

from fanin.console.actions.failures import address_of, described, fields_of, queue_field, selection_of
from fanin.domain.redrives import OrdinalRange, Selection
from fanin.errors import InvalidRequest, RequestTooLarge

HOSTILE = (
    "</script><script>alert(1)</script>",
    "a & b=c",
    "say \"no\"\nand 'no'\r\n",
    "é漢\U0001f600",
    "x" * 1_024,
)


def asked(**parameters: object) -> ImmutableMultiDict[str, str]:
    return ImmutableMultiDict(parse_qsl(urlencode(parameters, doseq=True), keep_blank_values=True))


def test_without_parameters_all_failures_are_meant():
    assert selection_of(asked()) == Selection()
    assert selection_of(asked(range="")) == Selection()
    assert described(Selection()) == ""


@pytest.mark.parametrize("error", HOSTILE)
def test_an_error_comes_back_from_an_address_and_from_a_form_as_it_was(error):
    chosen = Selection((error,), (OrdinalRange(0, 3), OrdinalRange(7, 8)))
    assert selection_of(asked(**address_of(chosen))) == chosen
    # A browser changes the line ends of a field
    hidden, ranges = fields_of(chosen)
    assert not {"\n", "\r"} & set(hidden.value)
    assert selection_of(asked(**{hidden.name: hidden.value, ranges.name: ranges.value})) == chosen


@pytest.mark.parametrize(
    ("text", "ranges"), [("7", [(7, 8)]), ("0..100", [(0, 100)]), (" 0 .. 100, 250,", [(0, 100), (250, 251)])]
)
def test_ranges_are_typed(text, ranges):
    assert selection_of(asked(range=text)).ranges == tuple(OrdinalRange(*one) for one in ranges)


@pytest.mark.parametrize("text", ["a", "1-2", "5..5", "9..3", "-1", "\u0661", "1..2..3", "9" * 30])
def test_what_is_not_a_range_is_refused(text):
    with pytest.raises(InvalidRequest):
        selection_of(asked(range=text))


def test_an_empty_error_does_not_mean_all():
    with pytest.raises(InvalidRequest):
        selection_of(asked(error=""))


def test_too_many_are_refused():
    with pytest.raises(RequestTooLarge):
        selection_of(asked(range=",".join(map(str, range(101)))))


def test_a_choice_is_described():
    chosen = Selection(("disk full", "no"), (OrdinalRange(0, 3),))
    assert described(chosen) == (
        "Only failures whose error begins with \u201cdisk full\u201d or \u201cno\u201d and of the items 0..3."
    )


def test_a_long_choice_is_described_in_short():
    text = described(Selection(tuple(f"{number}{'x' * 400}" for number in range(9))))
    assert "or one of 4 more." in text
    assert len(text) < 1_600


def test_the_queue_is_a_field():
    assert queue_field("work").value == "work"


@pytest.mark.parametrize("text", ["100,050", "7, 0..1,000", "12,345,678", "100,250"])
def test_a_number_with_thousands_is_not_taken_for_two(text):
    with pytest.raises(InvalidRequest, match="as one number or as two"):
        selection_of(asked(range=text))


@pytest.mark.parametrize("text", ["100, 050", "1,2,300", "0..10,7", "1234,567"])
def test_numbers_that_cannot_be_thousands_may_stand_close(text):
    assert len(selection_of(asked(range=text)).ranges) > 1
