"""What DynamoDB is asked to clear, to lease and to read, and what its answers mean."""

import re
from typing import Any

import pytest

from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.words import DynamoWords
from fanin.app.ports.words import Clear, Cleared, Tallied, Tally, WordKey
from fanin.domain.totals import MAX_TOTALS
from fanin.errors import ServiceUnavailable, Throttled
from tests.unit.adapters.dynamodb.conftest import refused

Asked = list[dict[str, Any]]
FULL = 2**64 - 1
LATER = 1_800_000_000
KEY = WordKey(7, 1, 3)
PASSED_OVER = Tally(whole=False)


@pytest.fixture
def words(connection: Connection) -> DynamoWords:
    return DynamoWords("words", connection)


def word(value: int, *done: int) -> dict[str, Any]:
    return {"word": {"N": str(value)}} | ({"done": {"NS": [str(bit) for bit in done]}} if done else {})


def test_a_whole_word_is_cleared_by_a_short_condition(words, aws, asked):
    aws.add_response("update_item", {"Attributes": word(0)})

    assert words.clear([Clear(KEY, FULL, LATER)]) == [Cleared(0, FULL, PASSED_OVER)]

    (request,) = asked
    assert request["ConditionExpression"] == "attribute_not_exists(word) OR word = :full"
    assert request["ExpressionAttributeValues"].keys() == {":full", ":mask", ":ttl", ":bits"}
    assert request["ExpressionAttributeValues"][":bits"] == {"NS": [str(bit) for bit in range(64)]}


@pytest.mark.parametrize("mask", [FULL - 1, FULL >> 1, FULL])
@pytest.mark.parametrize("failed", [FULL, FULL // 3, 1])
def test_the_longest_condition_is_within_the_limits_of_dynamodb(words, aws, asked, mask, failed):
    """At most 300 operators and functions in an expression, 4 KB of text, and no value that is unused."""
    aws.add_response("update_item", {"Attributes": word(FULL ^ mask)})

    words.clear([Clear(KEY, mask, LATER, failed=mask & failed)])

    (request,) = asked
    expressions = request["UpdateExpression"] + " " + request["ConditionExpression"]
    operators = re.findall(r"AND|OR|NOT|contains|attribute_not_exists|<>|=", request["ConditionExpression"])
    assert len(operators) <= 300
    assert len(request["ConditionExpression"]) <= 4096
    assert set(re.findall(r":\w+", expressions)) == request["ExpressionAttributeValues"].keys()


def test_tallies_go_up_with_the_bits_that_this_write_clears(words, aws, asked):
    # Given words below bits 0 to 2 that are done, and others who have cleared bit 0 with its tally
    carried = {0: Tally(7), 1: Tally(2), 2: Tally(3, whole=False)}
    before = word(FULL ^ 0b1, 0) | {"failures": {"N": "7"}, "carried": {"N": "1"}}
    after = word(FULL ^ 0b111, 0, 1, 2) | {"failures": {"N": "12"}, "carried": {"N": "2"}}
    aws.add_client_error("update_item", **refused(before))
    aws.add_response("update_item", {"Attributes": after})

    (cleared,) = words.clear([Clear(KEY, 0b111, LATER, carried=carried)])
    # Then the next try adds those of bits 1 and 2 only, and the sum is not whole, as one of them was not
    assert cleared == Cleared(FULL ^ 0b111, 0b110, Tally(12, whole=False))
    assert asked[1]["UpdateExpression"].endswith(" ADD done :bits, failures :failures, carried :carried")
    added = [
        {name: request["ExpressionAttributeValues"][name]["N"] for name in (":failures", ":carried")}
        for request in asked
    ]
    assert added == [{":failures": "12", ":carried": "2"}, {":failures": "5", ":carried": "1"}]


def test_a_row_that_contradicts_itself_is_reported_and_not_tried_for_ever(words, aws):
    aws.add_client_error("update_item", **refused(word(FULL, 5)))

    (outcome,) = words.clear([Clear(KEY, 1 << 5, LATER)])

    assert isinstance(outcome, ServiceUnavailable)
    assert "word 7/1/3" in str(outcome)


@pytest.mark.parametrize(
    ("key", "row", "tally"),
    [
        (KEY, word(FULL ^ 0b11) | {"failures": {"N": "5"}, "carried": {"N": "1"}}, Tally(5, whole=False)),
        (
            KEY,
            word(FULL ^ 0b11) | {"carried": {"N": "2"}, "t0": {"N": "7"}, "t1": {"N": "-2"}},
            Tally(0, sums=(7, -2)),
        ),
        (WordKey(7, 0, 0), word(FULL ^ 0b11) | {"failed": {"N": "2"}}, Tally(1)),
    ],
    ids=["one word gave no tally", "each word gave its sums", "items that failed are marked in the word"],
)
def test_a_tally_is_whole_only_if_every_clear_bit_came_with_one(words, aws, *, key, row, tally):
    """What is taken for whole is not looked for in the words below."""
    name = {"word_id": {"S": f"7/{key.level}/{key.number}"}}
    sums = ", ".join(f"t{place}" for place in range(MAX_TOTALS))
    read = {
        "Keys": [name],
        "ConsistentRead": True,
        "ProjectionExpression": f"word_id, word, failed, failures, carried, {sums}",
    }
    aws.add_response(
        "batch_get_item", {"Responses": {"words": [name | row]}}, {"RequestItems": {"words": read}}
    )

    assert words.read_tallied([key, key]) == {key: Tallied(FULL ^ 0b11, tally)}


def test_sums_go_up_with_the_bits_of_items_too(words, aws, asked):
    carried = {0: Tally(sums=(7, -2)), 2: Tally(whole=False, sums=(1, 1))}
    aws.add_response("update_item", {"Attributes": word(FULL ^ 0b111)})

    words.clear([Clear(WordKey(7, 0, 0), 0b111, LATER, carried=carried)])

    # An item that does not know what it brings is not counted, so that its word is not taken for whole
    (request,) = asked
    assert request["UpdateExpression"].endswith(" ADD done :bits, carried :carried, t0 :t0, t1 :t1")
    values = request["ExpressionAttributeValues"]
    assert [values[f":{name}"]["N"] for name in ("carried", "t0", "t1")] == ["1", "8", "-1"]


def test_a_word_that_stays_throttled_is_answered_with_its_error(words, aws):
    for _ in range(4):
        aws.add_client_error("update_item", "ProvisionedThroughputExceededException")

    (outcome,) = words.clear([Clear(KEY, 1, LATER)])

    assert isinstance(outcome, Throttled)
    aws.assert_no_pending_responses()


def test_clearing_bits_is_sent_again_since_a_repeat_does_no_harm(silent):
    words = DynamoWords("words", Connection())

    (outcome,) = words.clear([Clear(WordKey(7, 0, 0), 1, 2_000_000_000)])

    assert isinstance(outcome, ServiceUnavailable)
    assert len(silent.calls) > 1
