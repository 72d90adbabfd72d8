"""What DynamoDB is asked for notes of failed items, and what its answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import Stubber

from fanin.adapters import cursors
from fanin.adapters.dynamodb import Connection, DynamoParts
from fanin.app.ports.parts import FailureRow, Redriven, RetryRow, SentRow
from fanin.domain.ids import MAX_ITEMS
from fanin.errors import InvalidRequest, Throttled
from tests.unit.adapters.dynamodb.conftest import plainly, refused

Asked = list[dict[str, Any]]
LATER = 1_800_000_000


@pytest.fixture
def parts(connection: Connection) -> DynamoParts:
    return DynamoParts("parts", connection)


def key(part: str) -> dict[str, Any]:
    return {"batch_id": {"N": "8"}, "part": {"S": part}}


def spread_key(part: str) -> dict[str, Any]:
    """The key of a large part of item 3, in the fourth partition above all batch ids."""
    return {"batch_id": {"N": str(4 * 2**53 + 8)}, "part": {"S": part}}


def row(ordinal: int, reason: str = "why") -> dict[str, Any]:
    return {
        **key(f"failure/{ordinal:013}"),
        "item": {"S": f"8:g:{ordinal}"},
        "reason": {"S": reason},
        "expires_at": {"N": str(LATER)},
    }


def note(ordinal: int, reason: str = "why") -> FailureRow:
    return FailureRow(ordinal, f"8:g:{ordinal}", reason)


def test_notes_are_written_without_a_condition_the_last_of_each_item(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    # Given two notes of one item, and one of another whose attempts are known
    for _ in range(2):
        aws.add_response("update_item", {})
    tried = note(70)._replace(attempts=5)

    # When they are written
    parts.put_failures(8, [note(3, "first"), tried, note(3, "second")], expires_at=LATER)

    # Then each is an update that leaves nothing of an earlier note, by which IAM can limit the attributes
    first, second = sorted(asked, key=lambda request: request["Key"]["part"]["S"])
    assert first["Key"] == key("failure/0000000000003")
    assert "ConditionExpression" not in first
    assert plainly(first)[0] == (
        f"SET item = 8:g:3, reason = second, expires_at = {LATER}"
        " REMOVE attempts, failed_at, source, kept, totals"
    )
    assert plainly(second)[0] == (
        f"SET item = 8:g:70, reason = why, attempts = 5, expires_at = {LATER}"
        " REMOVE failed_at, source, kept, totals"
    )


def test_no_notes_are_no_request(parts: DynamoParts, aws: Stubber) -> None:
    parts.put_failures(8, iter(()), expires_at=LATER)


@pytest.mark.parametrize("ordinal", [0, 9, 10, MAX_ITEMS - 1])
def test_a_note_is_found_by_digits_that_sort_as_numbers_do(
    parts: DynamoParts, aws: Stubber, asked: Asked, ordinal: int
) -> None:
    aws.add_response("update_item", {})
    aws.add_response("query", {"Items": [row(ordinal)]})

    parts.put_failures(8, [note(ordinal)], expires_at=LATER)

    assert len(asked[0]["Key"]["part"]["S"]) == len("failure/") + 13
    assert parts.failures(8) == ([note(ordinal)], None)


def test_notes_are_listed_as_the_last_writes_left_them(parts: DynamoParts, aws: Stubber) -> None:
    aws.add_response(
        "query",
        {"Items": [row(3), row(70, "")]},
        {
            "TableName": "parts",
            "KeyConditionExpression": "batch_id = :batch AND begins_with(part, :failure)",
            "ExpressionAttributeValues": {":batch": {"N": "8"}, ":failure": {"S": "failure/"}},
            "ConsistentRead": True,
            "Limit": 25,
        },
    )

    assert parts.failures(8, limit=25) == ([note(3), note(70, "")], None)


def test_a_page_goes_on_after_the_key_at_which_the_last_one_ended(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    # Given a page that ends at a key, as DynamoDB says also when nothing is behind it
    end = key("failure/0000000000003")
    aws.add_response("query", {"Items": [row(3)], "LastEvaluatedKey": end})
    aws.add_response("query", {"Items": []})

    # When its cursor is used
    rows, cursor = parts.failures(8, limit=1)
    rest = parts.failures(8, cursor=cursor, limit=1)

    # Then the listing goes on after that key, and ends
    assert (rows, rest) == ([note(3)], ([], None))
    assert "ExclusiveStartKey" not in asked[0]
    assert asked[1]["ExclusiveStartKey"] == end


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        cursors.encode("failures of 9", 3),
        cursors.encode("failures of 8", 3, 4),
        cursors.encode_name("failures of 8", "failure/0000000000003"),
    ],
)
def test_a_cursor_that_this_listing_did_not_give_asks_nothing(
    parts: DynamoParts, aws: Stubber, cursor: str
) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        parts.failures(8, cursor=cursor)


def test_reasons_are_read_by_key_each_once(parts: DynamoParts, aws: Stubber) -> None:
    wanted = {"Keys": [key("failure/0000000000003"), key("failure/0000000000070")], "ConsistentRead": True}
    aws.add_response(
        "batch_get_item", {"Responses": {"parts": [row(70, "too late")]}}, {"RequestItems": {"parts": wanted}}
    )

    assert parts.reasons(8, [70, 3, 70]) == {70: "too late"}


def test_a_throttled_listing_says_so(parts: DynamoParts, aws: Stubber) -> None:
    aws.add_client_error("query", "ProvisionedThroughputExceededException")

    with pytest.raises(Throttled):
        parts.failures(8)


def test_a_note_over_another_replaces_what_is_known_and_never_a_later_one(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    aws.add_response("update_item", {})

    parts.update_failures(
        8, [note(3)._replace(attempts=5, failed_at=70, source="q", totals=(("rows", 2),))], expires_at=LATER
    )

    # Where the message is stays as it was noted, as this note does not say
    (request,) = asked
    assert request["TableName"] == "parts"
    assert request["Key"] == key("failure/0000000000003")
    assert plainly(request) == (
        (
            "SET item = 8:g:3, reason = why, attempts = 5, failed_at = 70, source = q,"
            f" totals = {{'rows': {{'S': '2'}}}}, expires_at = {LATER}"
        ),
        "attribute_not_exists(failed_at) OR failed_at <= 70",
    )


def test_a_note_without_a_time_is_written_over_any_other(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    aws.add_response("update_item", {})

    parts.update_failures(8, [note(3)], expires_at=LATER)

    assert plainly(asked[0]) == (
        f"SET item = 8:g:3, reason = why, expires_at = {LATER} REMOVE attempts, failed_at, source, totals",
        "",
    )


@pytest.mark.parametrize(
    ("kept", "later", "calls"),
    [("row", {}, 2), ("row", {"kept": {"S": "s3"}}, 1), ("", {}, 1)],
    ids=["only this one knows", "the later one knows", "nobody knows"],
)
def test_a_later_note_learns_where_the_message_is_only_if_it_does_not_know(
    parts: DynamoParts, aws: Stubber, asked: Asked, *, kept: str, later: dict[str, Any], calls: int
) -> None:
    # Given a later note of the same item
    aws.add_client_error("update_item", **refused({**row(3), "failed_at": {"N": "90"}, **later}))
    if calls == 2:
        aws.add_response("update_item", {})

    # When an earlier one comes late
    parts.update_failures(8, [note(3)._replace(failed_at=70, kept=kept)], expires_at=LATER)

    # Then it changes nothing but the place of the message, and only where none is noted
    aws.assert_no_pending_responses()
    if calls == 2:
        assert asked[1]["Key"] == key("failure/0000000000003")
        assert plainly(asked[1]) == (
            "SET kept = row",
            "attribute_exists(item) AND attribute_not_exists(kept)",
        )


def test_a_note_of_what_was_sent_grows_and_keeps_the_time_of_the_first(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    aws.add_response("update_item", {})
    aws.add_client_error("update_item", **refused())
    sent = SentRow("https://sqs/work", 3, 70, first_at=60, last_at=90)

    for _ in range(2):  # one that comes late is refused, which is as good
        parts.put_sent(8, sent, expires_at=LATER)

    assert asked[0]["TableName"] == "parts"
    assert asked[0]["Key"] == key("sent/0000000000003/36bcc5c67232c582")
    assert plainly(asked[0]) == (
        (
            f"SET queue = https://sqs/work, start = 3, stop = 70, last_at = 90, expires_at = {LATER},"
            " first_at = if_not_exists(first_at, 60)"
        ),
        "attribute_not_exists(stop) OR stop <= 70",
    )


def test_what_was_sent_is_listed_from_an_ordinal_down(parts: DynamoParts, aws: Stubber) -> None:
    items = [
        {
            **key("sent/0000000000003/00"),
            "queue": {"S": "q"},
            "start": {"N": "3"},
            "stop": {"N": "70"},
            "first_at": {"N": "60"},
            "last_at": {"N": "90"},
        }
    ]
    aws.add_response(
        "query",
        {"Items": items, "LastEvaluatedKey": key("sent/0000000000003/00")},
        between("sent/", "sent/0000000000009~", limit=1) | {"ScanIndexForward": False},
    )

    assert parts.sent(8, upto=9, limit=1) == ([SentRow("q", 3, 70, 60, 90)], True)


def between(first: str, last: str, *, limit: int) -> dict[str, Any]:
    """A strongly consistent query of keys from the first to the last."""
    return {
        "TableName": "parts",
        "KeyConditionExpression": "batch_id = :batch AND part BETWEEN :first AND :last",
        "ExpressionAttributeValues": {":batch": {"N": "8"}, ":first": {"S": first}, ":last": {"S": last}},
        "ConsistentRead": True,
        "Limit": limit,
    }


def test_notes_between_two_ordinals_are_asked_for_without_the_second(
    parts: DynamoParts, aws: Stubber
) -> None:
    aws.add_response(
        "query", {"Items": [row(9)]}, between("failure/0000000000009", "failure/0000000000063", limit=5)
    )

    assert parts.notes_between(8, 9, 64, limit=5) == [note(9)]


def test_a_note_tells_all_that_is_known_of_a_failure(parts: DynamoParts, aws: Stubber) -> None:
    known = {
        **row(3),
        "attempts": {"N": "5"},
        "failed_at": {"N": "70"},
        "source": {"S": "q"},
        "kept": {"S": "row"},
        "totals": {"M": {"rows": {"S": "2"}, "cents": {"S": "-5"}}},
    }
    aws.add_response("batch_get_item", {"Responses": {"parts": [known, row(4)]}})

    assert parts.notes(8, [3, 4]) == {
        3: FailureRow(3, "8:g:3", "why", 5, 70, "q", "row", (("cents", -5), ("rows", 2))),
        4: FailureRow(4, "8:g:4", "why", 0, 0, "", "", ()),
    }


RETRY = RetryRow(3, attempt=2, error="why", queue="q", at=70)
RETRY_ITEM: dict[str, Any] = {
    **key("retry/0000000000003"),
    "attempt": {"N": "2"},
    "error": {"S": "why"},
    "queue": {"S": "q"},
    "at": {"N": "70"},
}
MARK: dict[str, Any] = {
    **spread_key("redriven/0000000000003"),
    "redrive": {"S": "a"},
    "failed_at": {"N": "70"},
}


class TestRetries:
    def test_the_last_attempt_at_an_item_is_noted(
        self, parts: DynamoParts, aws: Stubber, asked: Asked
    ) -> None:
        aws.add_response("update_item", {})

        parts.put_retries(8, [RETRY._replace(attempt=1), RETRY], expires_at=LATER)

        assert asked[0]["Key"] == key("retry/0000000000003")
        assert plainly(asked[0]) == (
            f"SET attempt = 2, error = why, queue = q, at = 70, expires_at = {LATER}",
            "",
        )

    def test_attempts_are_read_by_key(self, parts: DynamoParts, aws: Stubber) -> None:
        wanted = {"Keys": [key(f"retry/{ordinal:013}") for ordinal in (3, 9)], "ConsistentRead": True}
        aws.add_response(
            "batch_get_item", {"Responses": {"parts": [RETRY_ITEM]}}, {"RequestItems": {"parts": wanted}}
        )

        assert parts.retries(8, [9, 3, 9]) == {3: RETRY}

    def test_attempts_are_listed_from_an_ordinal_on(self, parts: DynamoParts, aws: Stubber) -> None:
        aws.add_response("query", {"Items": [RETRY_ITEM]}, between("retry/0000000000003", "retry/~", limit=5))

        assert parts.retries_from(8, 3, limit=5) == [RETRY]


class TestMessages:
    def test_a_message_lives_as_long_as_its_batch_and_outside_its_partition(
        self, parts: DynamoParts, aws: Stubber, asked: Asked
    ) -> None:
        aws.add_response("update_item", {})

        parts.put_messages(8, {3: b"body"}, expires_at=LATER)

        assert asked[0]["Key"] == spread_key("message/0000000000003")
        assert plainly(asked[0]) == (f"SET message = b'body', expires_at = {LATER}", "")

    def test_messages_are_read_and_deleted_by_key(self, parts: DynamoParts, aws: Stubber) -> None:
        place = spread_key("message/0000000000003")
        aws.add_response(
            "batch_get_item",
            {"Responses": {"parts": [{**place, "message": {"B": b"body"}}]}},
            {"RequestItems": {"parts": {"Keys": [place], "ConsistentRead": True}}},
        )
        aws.add_response("delete_item", {}, {"TableName": "parts", "Key": place})

        assert parts.messages(8, [3, 3]) == {3: b"body"}
        parts.delete_messages(8, [3, 3])


class TestRedriven:
    @pytest.mark.parametrize(
        ("again", "condition"),
        [
            (False, "attribute_not_exists(redrive)"),
            (True, "attribute_not_exists(redrive) OR failed_at < :failed_at"),
        ],
    )
    def test_a_failure_is_taken_by_one_conditional_write(
        self, parts: DynamoParts, aws: Stubber, *, again: bool, condition: str
    ) -> None:
        aws.add_response(
            "update_item",
            {},
            {
                "TableName": "parts",
                "Key": spread_key("redriven/0000000000003"),
                "UpdateExpression": "SET redrive = :redrive, failed_at = :failed_at,"
                " expires_at = :expires_at",
                "ConditionExpression": condition,
                "ExpressionAttributeValues": {
                    ":redrive": {"S": "a"},
                    ":failed_at": {"N": "70"},
                    ":expires_at": {"N": str(LATER)},
                },
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            },
        )

        assert parts.mark_redriven(8, "a", {3: 70}, again=again, expires_at=LATER) == {3}

    @pytest.mark.parametrize(("redrive", "taken"), [("a", {3}), ("b", set())])
    def test_a_failure_that_is_taken_belongs_to_the_redrive_that_took_it(
        self, parts: DynamoParts, aws: Stubber, redrive: str, taken: set[int]
    ) -> None:
        aws.add_client_error("update_item", **refused(MARK))

        assert parts.mark_redriven(8, redrive, {3: 70}, again=False, expires_at=LATER) == taken

    def test_a_mark_whose_row_has_expired_meanwhile_is_not_taken(
        self, parts: DynamoParts, aws: Stubber
    ) -> None:
        aws.add_client_error("update_item", **refused())

        assert parts.mark_redriven(8, "a", {3: 70}, again=True, expires_at=LATER) == set()

    def test_marks_are_read_by_key(self, parts: DynamoParts, aws: Stubber) -> None:
        wanted = {"Keys": [spread_key("redriven/0000000000003")], "ConsistentRead": True}
        aws.add_response(
            "batch_get_item", {"Responses": {"parts": [MARK]}}, {"RequestItems": {"parts": wanted}}
        )

        assert parts.redriven(8, [3, 3]) == {3: Redriven("a", 70)}
