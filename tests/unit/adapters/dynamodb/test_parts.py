"""What DynamoDB is asked for notes of failed items, and what its answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import Stubber

from fanin.adapters.dynamodb import Connection, DynamoParts
from fanin.app.ports.parts import FailureRow, Redriven, RetryRow, SentRow
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
        "failed_at": {"N": "50"},
        "expires_at": {"N": str(LATER)},
    }


def note(ordinal: int, reason: str = "why") -> FailureRow:
    return FailureRow(ordinal, f"8:g:{ordinal}", reason, failed_at=50)


def test_notes_are_written_where_none_is_the_first_of_each_item(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    # Given two notes of one item, and one of another whose attempts are known
    for _ in range(2):
        aws.add_response("update_item", {})
    tried = note(70)._replace(attempts=5)

    # When they are written
    parts.put_failures(8, [note(3, "first"), tried, note(3, "second")], expires_at=LATER)

    # Then each is an update, by which IAM can limit the attributes, and which leaves nothing of another note
    first, second = sorted(asked, key=lambda request: request["Key"]["part"]["S"])
    assert first["Key"] == key("failure/0000000000003")
    assert plainly(first) == (
        (
            f"SET item = 8:g:3, reason = first, failed_at = 50, expires_at = {LATER}"
            " REMOVE attempts, source, kept, totals, given_up"
        ),
        "attribute_not_exists(item) OR attribute_exists(given_up)",
    )
    assert plainly(second)[0] == (
        f"SET item = 8:g:70, reason = why, failed_at = 50, attempts = 5, expires_at = {LATER}"
        " REMOVE source, kept, totals, given_up"
    )


def test_a_page_goes_on_after_the_key_at_which_the_last_one_ended(parts: DynamoParts, aws: Stubber) -> None:
    # Given a page that ends at a key, as DynamoDB says also when nothing is behind it
    end = key("failure/0000000000003")
    request = {
        "TableName": "parts",
        "KeyConditionExpression": "batch_id = :batch AND begins_with(part, :failure)",
        "ExpressionAttributeValues": {":batch": {"N": "8"}, ":failure": {"S": "failure/"}},
        "ConsistentRead": True,
        "Limit": 1,
    }
    aws.add_response("query", {"Items": [row(3)], "LastEvaluatedKey": end}, request)
    aws.add_response("query", {"Items": []}, request | {"ExclusiveStartKey": end})

    # When its cursor is used
    rows, cursor = parts.failures(8, limit=1)
    rest = parts.failures(8, cursor=cursor, limit=1)

    # Then the listing goes on after that key, and ends
    assert (rows, rest) == ([note(3)], ([], None))


def test_a_note_over_another_replaces_what_is_known_and_never_a_later_one(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    aws.add_response("update_item", {})

    parts.update_failures(
        8, [note(3)._replace(attempts=5, failed_at=70, source="q", totals=(("rows", 2),))], expires_at=LATER
    )

    (request,) = asked
    assert request["TableName"] == "parts"
    assert request["Key"] == key("failure/0000000000003")
    assert plainly(request) == (
        (
            "SET item = 8:g:3, reason = why, failed_at = 70, attempts = 5, source = q,"
            f" totals = {{'rows': {{'S': '2'}}}}, expires_at = {LATER} REMOVE kept, given_up"
        ),
        "(attribute_not_exists(failed_at) OR failed_at <= 70) AND attribute_not_exists(kept)",
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
            "SET kept = row REMOVE attempts, source",
            "attribute_exists(failed_at) AND attribute_not_exists(kept)",
        )


def test_a_note_without_a_message_leaves_what_belongs_to_the_one_that_was_kept(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    aws.add_client_error("update_item", **refused({**row(3), "kept": {"S": "row"}}))
    aws.add_response("update_item", {})

    parts.update_failures(8, [note(3)._replace(failed_at=70, attempts=1)], expires_at=LATER)

    assert plainly(asked[1]) == (
        f"SET item = 8:g:3, reason = why, failed_at = 70, expires_at = {LATER} REMOVE totals, given_up",
        "attribute_not_exists(failed_at) OR failed_at <= 70",
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


RETRY = RetryRow(3, attempt=2, error="why", queue="q", at=70)


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


class TestMessages:
    def test_a_message_lives_as_long_as_its_batch_and_outside_its_partition(
        self, parts: DynamoParts, aws: Stubber, asked: Asked
    ) -> None:
        aws.add_response("update_item", {})

        parts.put_messages(8, {3: b"body"}, expires_at=LATER)

        assert asked[0]["Key"] == spread_key("message/0000000000003")
        assert plainly(asked[0]) == (
            f"SET message = b'body', expires_at = {LATER}",
            "attribute_not_exists(message)",
        )


class TestRedriven:
    def test_a_failure_is_taken_by_one_write_over_the_mark_that_was_read(
        self, parts: DynamoParts, aws: Stubber, asked: Asked
    ) -> None:
        for _ in range(2):
            aws.add_response("update_item", {})
        mark = Redriven("a", 70, "9:g:1")

        for before in ({}, {3: Redriven("b", 60, lost="9:g:7")}):
            assert parts.mark_redriven(8, {3: mark}, before, expires_at=LATER) == {3}

        assert asked[0]["Key"] == spread_key("redriven/0000000000003")
        setting = f"SET redrive = a, failed_at = 70, item = 9:g:1, lost = , expires_at = {LATER}"
        assert [plainly(request) for request in asked] == [
            (setting, "attribute_not_exists(redrive)"),
            (setting, "redrive = b AND failed_at = 60 AND item =  AND lost = 9:g:7"),
        ]

    @pytest.mark.parametrize(("redrive", "taken"), [("a", {3}), ("b", set())])
    def test_a_write_that_is_refused_by_its_own_mark_was_applied(
        self, parts: DynamoParts, aws: Stubber, redrive: str, taken: set[int]
    ) -> None:
        row = {"redrive": {"S": redrive}, "failed_at": {"N": "70"}, "item": {"S": "9:g:1"}}
        row["lost"] = {"S": ""}
        aws.add_client_error("update_item", **refused({**spread_key("redriven/0000000000003"), **row}))

        assert parts.mark_redriven(8, {3: Redriven("a", 70, "9:g:1")}, {}, expires_at=LATER) == taken
