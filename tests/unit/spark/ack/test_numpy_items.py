"""Item ids split in numpy, against a regular expression."""

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.spark.ack.numpy_items import IdColumns

CANONICAL = re.compile(r"(.*):(0|[1-9][0-9]{0,9})", re.DOTALL)
TEXTS = st.one_of(
    st.text(max_size=8),
    st.builds("{}:{}".format, st.text(":ab0", max_size=5), st.integers(0, 10**12)),
    st.builds(
        "{}:{}".format, st.text(":ab0", max_size=5), st.sampled_from(["0", "00", "01", "9" * 10, "9" * 11])
    ),
)


def split(texts: list[str], type_: pa.DataType | None = None) -> list[tuple[str, int] | None]:
    ids = IdColumns()
    codes, indices = ids.split(pa.array(texts, type_ or pa.string()))
    prefixes = ids.prefixes
    assert len(set(prefixes)) == len(prefixes)
    each = [codes] * len(texts) if isinstance(codes, int) else codes.tolist()
    pairs = zip(each, indices.tolist(), strict=True)
    return [(prefixes[code], index) if code >= 0 else None for code, index in pairs]


def expected(text: str) -> tuple[str, int] | None:
    match = CANONICAL.fullmatch(text)
    return (match[1], int(match[2])) if match else None


@settings(max_examples=50)
@given(st.lists(TEXTS, max_size=20))
def test_ids_are_split_at_their_last_colon(texts):
    assert split(texts) == [expected(text) for text in texts]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_both_kinds_of_arrow_text_are_taken(type_):
    assert split(["7:a:12", "7:a:3", "x"], type_) == [("7:a", 12), ("7:a", 3), None]


def test_a_slice_of_an_array_is_split_by_its_own_rows():
    ids = IdColumns()
    codes, indices = ids.split(pa.array(["7:a:1", "7:b:2", "7:c:33", "7:d:4"])[1:3])
    assert [ids.prefixes[code] for code in codes] == ["7:b", "7:c"]
    assert indices.tolist() == [2, 33]


def test_prefixes_are_numbered_over_all_pieces():
    ids = IdColumns()
    pieces = [ids.split(pa.array(texts))[0].tolist() for texts in (["7:a:1", "x"], ["7:b:1", "7:a:2"], [])]
    assert (pieces, ids.prefixes) == ([[0, -1], [1, 0], []], ["7:a", "7:b"])


ODD = ["00", "01", "", "0x1f", "0xfffff", "-1", "-0", "+1", " 1", "1 ", "1_0", "٣", "1:2", "é", "9" * 11]
NUMBERS = st.sampled_from(["0", "7", "12", "9" * 10, *ODD])
LONG = "243988644675881:00000000-0002-8000-8003-c314277f3e80"


@given(st.lists(st.builds("{}:{}".format, st.sampled_from(["7:a", "7", "", LONG]), NUMBERS), max_size=30))
def test_rows_of_a_common_prefix_are_split_like_any_others(texts):
    assert split(texts) == [expected(text) for text in texts]


@pytest.mark.parametrize("prefix", ["7:a", LONG])
@pytest.mark.parametrize("odd", ["0xfffff", "01", "00000001", "0000000001", "", "+7", "9" * 11, "1:5", "x"])
def test_one_odd_row_among_many_canonical_ones_is_found(odd, prefix):
    # Given ids of one prefix, one of which is not spelled as the service spells it
    texts = [f"{prefix}:{index}" for index in range(2_000)]
    texts[1_234] = f"{prefix}:{odd}"
    # Then only that one is told apart
    assert split(texts) == [expected(text) for text in texts]


@given(
    st.lists(st.integers(0, 10**10 - 1), min_size=1, max_size=50),
    st.sampled_from([pa.string(), pa.large_string()]),
)
def test_ids_of_one_group_are_split_in_any_slice(numbers, type_):
    # Given ids of one group, and rows of other groups or of the same one around them
    texts = [f"{LONG}:{number}" for number in numbers]
    for before, after in (("7:a:1", "x"), (f"{LONG}:5", f"{LONG}:6")):
        ids = IdColumns()

        codes, indices = ids.split(pa.array([before, *texts, after], type_).slice(1, len(texts)))

        assert (ids.prefixes, codes, indices.tolist()) == ([LONG], 0, numbers)


def test_a_first_id_that_is_not_text_does_no_harm_to_those_after_it():
    # Given bytes that are not UTF-8 where the type says text, as files may have them
    raw = pa.array([b"\xff" * 20 + b":5", f"{LONG}:6".encode()], pa.binary()).view(pa.string())
    ids = IdColumns()
    codes, indices = ids.split(raw)
    assert [ids.prefixes[code] for code in codes] == ["\ufffd" * 20, LONG]
    assert indices.tolist() == [5, 6]


BYTES = [high + low for high in range(0, 256, 16) for low in (0, 1, 9, 10, 15)]
"""Every upper half of a byte, with the lower halves next to those of digits."""


@pytest.mark.parametrize("digits", [1, 7, 8, 10])
@pytest.mark.parametrize("beside", [f"{LONG}:7", "x"])
def test_each_byte_at_each_place_is_a_digit_or_none(digits, beside):
    head = f"{LONG}:".encode()
    for place in range(digits):
        for byte in BYTES:
            tail = bytearray(b"1" * digits)
            tail[place] = byte
            ids = IdColumns()
            codes, indices = ids.split(pa.array([head + bytes(tail), beside.encode()], pa.binary()))
            code = codes if isinstance(codes, int) else int(codes[0])
            match = re.fullmatch(rb"(.*):(0|[1-9][0-9]{0,9})", head + bytes(tail), re.DOTALL)
            assert (code >= 0) is (match is not None)
            if match:
                assert (ids.prefixes[code].encode(), indices[0]) == (match[1], int(match[2]))


def test_bytes_that_are_no_text_are_no_number():
    codes, indices = IdColumns().split(pa.array([b"7:a:1", b"7:a:\xff", b"\xff:2"], pa.binary()))
    assert (codes.tolist(), indices.tolist()) == ([0, -1, 1], [1, 0, 2])
