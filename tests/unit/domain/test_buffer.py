"""A buffer's words; payloads that a queue can never take are refused before anything is written."""

import pytest

from fanin.domain import limits
from fanin.domain.buffer import PutOutcome, check_put
from fanin.errors import InvalidRequest, RequestTooLarge


def test_characters_that_no_queue_takes_are_refused_with_their_place():
    check_put([" \t\n\r~\x7f\x80\xff", "\\u0000"])
    with pytest.raises(InvalidRequest, match=r"payload 1 has U\+0000 at 3, which no SQS"):
        check_put(["fine", "abc\0"])


@pytest.mark.parametrize("half", ["\ud800", "\udbff\x20"])
def test_half_a_pair_is_refused(half):
    with pytest.raises(InvalidRequest, match="half of a surrogate pair"):
        check_put(["fine", half])


@pytest.mark.parametrize("payloads", [[], [""], ["a", ""], [7], [None]])
def test_each_is_text_and_there_is_one(payloads):
    with pytest.raises(InvalidRequest):
        check_put(payloads)


def test_together_they_have_as_many_bytes_as_a_message_may_carry():
    half = limits.MAX_PAYLOAD // 2
    check_put(["x" * half, "y" * half])
    check_put(["é" * half])

    for payloads in (["x" * half, "y" * (half + 1)], ["é" * (half + 1)], ["☂" * half], ["a"] * 11):
        with pytest.raises(RequestTooLarge):
            check_put(payloads)


def test_the_answer_to_a_put_has_these_words():
    assert [*PutOutcome] == ["waiting", "ready"]
