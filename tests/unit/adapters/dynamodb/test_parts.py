"""What DynamoDB is asked for notes of failed items, and what its answers mean."""

from typing import Any

import pytest

from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.app.ports.parts import FailureRow, Redriven
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


@pytest.mark.parametrize(
    ("kept", "later", "calls"),
    [("row", {}, 2), ("row", {"kept": {"S": "s3"}}, 1), ("", {}, 1)],
    ids=["only this one knows", "the later one knows", "nobody knows"],
)
def test_a_later_note_learns_where_the_message_is_only_if_it_does_not_know(
    parts, aws, asked, *, kept, later, calls
):
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
            "(attribute_exists(failed_at)) AND (attribute_not_exists(kept))",
        )


def test_a_note_without_a_message_leaves_what_belongs_to_the_one_that_was_kept(parts, aws, asked):
    aws.add_client_error("update_item", **refused({**row(3), "kept": {"S": "row"}}))
    aws.add_response("update_item", {})

    parts.update_failures(8, [note(3)._replace(failed_at=70, attempts=1)], expires_at=LATER)

    assert plainly(asked[1]) == (
        f"SET item = 8:g:3, reason = why, failed_at = 70, expires_at = {LATER} REMOVE totals, given_up",
        "(attribute_not_exists(failed_at) OR failed_at <= 70)",
    )


class TestRedriven:
    @pytest.mark.parametrize(("redrive", "taken"), [("a", {3}), ("b", set())])
    def test_a_write_that_is_refused_by_its_own_mark_was_applied(self, parts, aws, redrive, taken):
        row = {"redrive": {"S": redrive}, "failed_at": {"N": "70"}, "item": {"S": "9:g:1"}}
        row["lost"] = {"S": ""}
        aws.add_client_error("update_item", **refused({**spread_key("redriven/0000000000003"), **row}))

        assert parts.mark_redriven(8, {3: Redriven("a", 70, "9:g:1")}, {}, expires_at=LATER) == taken


def test_a_deletion_that_is_repeated_asks_only_for_what_is_left(parts, aws, asked):
    # Given two messages, of which an earlier run has deleted one
    left = spread_key("message/0000000000003")
    aws.add_response("batch_get_item", {"Responses": {"parts": [left]}})
    aws.add_response("delete_item", {})
    # When both are deleted
    parts.delete_messages(8, [2, 3])
    # Then it reads keys alone, and deletes the other one
    read, deleted = asked
    assert read["RequestItems"]["parts"]["ProjectionExpression"] == "batch_id, part"
    assert deleted["Key"] == left
