"""Limits: the edge is allowed, one past it is refused, and the message says what to do.

Chunks of a stream.
"""

import re
import string
from itertools import count, islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain import limits
from fanin.domain.limits import chunks, counted
from fanin.errors import InvalidRequest, RequestTooLarge

ALPHANUMERIC = string.ascii_letters + string.digits


class TestAtMost:
    @pytest.mark.parametrize("count", [0, 2, 3])
    def test_a_collection_up_to_the_limit_is_allowed(self, count):
        limits.at_most("items", range(count), 3)

    def test_one_more_is_too_large(self):
        with pytest.raises(RequestTooLarge, match=r"^4 items in one call; send at most 3$"):
            limits.at_most("items", range(4), 3)


class TestWhole:
    @pytest.mark.parametrize(("bound", "beyond"), [(1, 0), (5, 6)])
    def test_a_bound_is_allowed_and_one_past_it_refused(self, bound, beyond):
        assert limits.whole("n", bound, 1, 5) == bound
        with pytest.raises(InvalidRequest, match=f"^n must be a whole number from 1 to 5, not {beyond}$"):
            limits.whole("n", beyond, 1, 5)

    @pytest.mark.parametrize("value", [10**5_000, -(10**5_000), [10**5_000]], ids=["high", "low", "list"])
    def test_a_number_too_long_to_be_written_is_refused_as_any_other(self, value):
        with pytest.raises(
            InvalidRequest,
            match=r"^n must be a whole number from 1 to 5, not a number of thousands of digits$",
        ):
            limits.whole("n", value, 1, 5)

    @pytest.mark.parametrize("value", [True, False, 1.0, float("nan"), "1", None, [1]])
    def test_only_an_integer_is_a_whole_number(self, value):
        with pytest.raises(InvalidRequest, match="n must be a whole number from 0 to 5"):
            limits.whole("n", value, 0, 5)

    def test_the_message_quotes_the_first_32_characters_of_a_long_value(self):
        with pytest.raises(InvalidRequest, match=f"not '{'x' * 32}'$"):
            limits.whole("n", "x" * 33, 0, 5)


class TestText:
    @pytest.mark.parametrize("value", ["ab", "éééé", "😀😀😀😀"])
    def test_length_counts_characters_and_both_bounds_are_allowed(self, value):
        assert limits.text("it", value, 4, least=2) == value
        assert limits.text("it", "", 4) == ""

    @pytest.mark.parametrize("value", ["", "a", "abcde", None, 3, b"abc", ["a", "b"]])
    def test_other_lengths_and_other_types_are_refused(self, value):
        with pytest.raises(InvalidRequest, match=r"^it must be text of 2 to 4 characters$"):
            limits.text("it", value, 4, least=2)

    def test_half_a_surrogate_pair_is_refused_since_no_service_of_aws_takes_it(self):
        assert limits.text("key", "💥é", 5) == "💥é"
        with pytest.raises(InvalidRequest, match="key has one half of a surrogate pair"):
            limits.text("key", "a\ud83d", 5)


class TestSendable:
    @pytest.mark.parametrize(
        ("low", "high"), [(0x9, 0xA), (0xD, 0xD), (0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF)]
    )
    def test_a_message_carries_every_character_of_xml_and_none_beside_them(self, low, high):
        # "Char", Extensible Markup Language (XML) 1.0
        for code in (low, (low + high) // 2, high):
            assert limits.sendable("it", f"a{chr(code)}") == f"a{chr(code)}"
        for code in {low - 1, high + 1} - {0x110000}:
            with pytest.raises(InvalidRequest, match=rf"^it has U\+{code:04X} at 1, which no SQS message"):
                limits.sendable("it", f"a{chr(code)}")


class TestPairs:
    @pytest.mark.parametrize(
        "values", [{}, {f"{n}": "v" for n in range(16)}, {"k": ""}, {"k" * 64: "v" * 256}]
    )
    def test_a_small_map_of_strings_is_allowed(self, values):
        limits.pairs("metadata", values)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({f"{n}": "v" for n in range(17)}, "metadata may have at most 16 pairs"),
            ({"": "v"}, "a key of metadata must be text of 1 to 64 characters"),
            ({"k" * 65: "v"}, "a key of metadata must be text of 1 to 64 characters"),
            ({3: "v"}, "a key of metadata must be text of 1 to 64 characters"),
            ({"k": "v" * 257}, "metadata['k'] must be text of 0 to 256 characters"),
            ({"k": 3}, "metadata['k'] must be text of 0 to 256 characters"),
            ({"a": "v", "k": None}, "metadata['k'] must be text of 0 to 256 characters"),
        ],
    )
    def test_a_pair_too_many_or_a_bad_pair_is_refused(self, values, message):
        with pytest.raises(InvalidRequest, match=f"^{re.escape(message)}$"):
            limits.pairs("metadata", values)


class TestName:
    @given(st.text(alphabet=ALPHANUMERIC + "._:-/ é²\n", max_size=6))
    def test_a_name_begins_with_a_letter_or_digit_and_goes_on_with_these_or_marks(self, value):
        if value and value[0] in ALPHANUMERIC and set(value) <= set(ALPHANUMERIC + "._:-"):
            assert limits.name("topic", value, 6) == value
        else:
            with pytest.raises(InvalidRequest, match="topic must be 1 to 6 letters, digits and"):
                limits.name("topic", value, 6)

    def test_a_name_may_be_as_long_as_the_limit(self):
        assert limits.name("topic", "x" * 128, 128) == "x" * 128
        with pytest.raises(InvalidRequest, match="1 to 128 letters"):
            limits.name("topic", "x" * 129, 128)

    @pytest.mark.parametrize("value", ["", "a\n", "\u0661", None, 7, ["a"]])
    def test_anything_else_is_refused(self, value):
        with pytest.raises(InvalidRequest, match="topic must be"):
            limits.name("topic", value, 128)


@pytest.mark.parametrize(
    ("name", "fits"),
    [("a" * 48, True), ("A-1_b", True), ("a" * 49, False), ("", False), ("-a", False), ("a.b", False)],
)
def test_the_name_of_a_buffer_fits_into_the_name_of_a_queue(name, *, fits):
    assert bool(re.fullmatch(limits.BUFFER_NAME, name)) is fits


@given(st.lists(st.integers(0, 12)), st.integers(1, 5), st.integers(1, 20))
def test_pages_keep_everything_in_order_and_within_bounds(sizes, most, most_bytes):
    # When
    cut = list(chunks(sizes, max_items=most, size_of=lambda size: size, max_bytes=most_bytes))
    # Then
    assert [size for page in cut for size in page] == sizes
    assert all(0 < len(page) <= most for page in cut)
    assert all(sum(page) <= most_bytes or len(page) == 1 for page in cut)
    # And: no page could have taken the first thing of the next
    for page, after in pairwise(cut):
        assert len(page) == most or sum(page) + after[0] > most_bytes


def test_a_stream_without_end_is_read_one_page_ahead_at_most():
    numbers = count()
    assert list(islice(chunks(numbers, max_items=3), 2)) == [[0, 1, 2], [3, 4, 5]]
    assert next(numbers) <= 7


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 trips"), (1, "1 trip"), (2, "2 trips"), (1234, "1,234 trips")]
)
def test_one_is_singular(number, text):
    # Given a number of trips, when it is written, then one of them is in the singular
    assert counted(number, "trip") == text


def test_a_plural_may_be_named():
    assert counted(0, "reply", "replies") == "0 replies"
    assert counted(1, "item was", "items were") == "1 item was"
