"""From what people write to what the services take."""

from datetime import UTC, datetime, timedelta, timezone
from math import inf

import pytest

from fanin.client.conversions import member, milliseconds, patience, seconds, selection, several, targets
from fanin.domain.batch import State
from fanin.domain.redrives import OrdinalRange
from fanin.domain.targets import Target, TargetType, When
from fanin.errors import InvalidRequest

NOW = 1_600_000_000_000
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(None, None), (0, 0), (90, 90), (timedelta(minutes=2), 120), (timedelta(milliseconds=1_999), 1)],
)
def test_a_duration_is_whole_seconds(duration, expected):
    assert seconds(duration) == expected


@pytest.mark.parametrize(("timeout", "waits"), [(None, inf), (0, 0), (0.5, 0.5), (timedelta(minutes=1), 60)])
def test_somebody_waits_for_a_timedelta_or_seconds(timeout, waits):
    assert patience(timeout) == waits


@pytest.mark.parametrize("timeout", ["5", True, -1, float("nan")])
def test_nobody_waits_for_anything_else(timeout):
    with pytest.raises(InvalidRequest, match="timeout must be a timedelta or seconds"):
        patience(timeout)


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (1_700_000_000_000, 1_700_000_000_000),
        (datetime(2026, 11, 21, 12, tzinfo=UTC), 1_795_262_400_000),
        (datetime(2026, 11, 21, 13, tzinfo=timezone(timedelta(hours=1))), 1_795_262_400_000),
        (datetime(2026, 11, 21, 12, 0, 0, 1_500, tzinfo=UTC), 1_795_262_400_001),
    ],
)
def test_a_point_in_time_is_milliseconds_since_the_epoch(moment, expected):
    assert milliseconds(moment, NOW) == expected


@pytest.mark.parametrize("minutes", [30, -30])
def test_a_timedelta_counts_from_now(minutes):
    assert milliseconds(timedelta(minutes=minutes), NOW) == NOW + 60_000 * minutes


def test_a_datetime_without_a_zone_is_refused_with_what_to_write():
    with pytest.raises(
        InvalidRequest, match=r"2026-11-21 00:00:00 has no time zone; use datetime\.now\(UTC\)"
    ):
        milliseconds(datetime(2026, 11, 21), NOW)  # noqa: DTZ001 - that is the point


@pytest.mark.parametrize("value", [1_795_262_400_000.5, "2026-11-21T12:00:00Z", "", True])
def test_a_time_of_another_type_is_refused_before_anything_is_sent(value):
    with pytest.raises(InvalidRequest, match="a datetime, a timedelta from now, or whole milliseconds"):
        milliseconds(value, NOW)
    with pytest.raises(InvalidRequest, match="a timedelta or whole seconds"):
        seconds(value)


@pytest.mark.parametrize("value", [State.OPEN, "open"])
def test_a_member_is_found_by_its_value(value):
    assert member(State, value) is State.OPEN


def test_a_value_that_no_member_has_is_refused_with_all_that_exist():
    with pytest.raises(InvalidRequest) as refused:
        member(State, "OPEN")
    known = ", ".join(state.value for state in State)
    assert str(refused.value) == f"'OPEN' is not a State: name one of {known}"


@pytest.mark.parametrize("values", [5, None, "a", b"a"])
def test_one_value_is_not_several(values):
    with pytest.raises(
        InvalidRequest, match=rf"counts must be several, such as \[a\], not {type(values).__name__}"
    ):
        several("counts", values, str, "[a]")


def test_each_of_several_is_checked():
    assert several("counts", iter(["a", "b"]), str, "[a]") == ("a", "b")
    with pytest.raises(InvalidRequest, match="not of int"):
        several("counts", iter(["a", 5]), str, "[a]")


class TestTargets:
    def test_objects_and_targets_become_targets_of_the_right_types(self):
        given = [
            {"type": "sqs", "when": "complete", "queue_url": "https://q"},
            Target("webhook", "failed", url="https://a.example"),
            Target(TargetType.STEP_FUNCTIONS, task_token="t"),
        ]
        found = targets(given)
        assert [(one.type, one.when) for one in found] == [
            (TargetType.SQS, When.COMPLETE),
            (TargetType.WEBHOOK, When.FAILED),
            (TargetType.STEP_FUNCTIONS, When.ANY),
        ]
        assert all(isinstance(one.type, TargetType) and isinstance(one.when, When) for one in found)

    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ({"type": "sqs"}, "on_end must be several"),
            ([5], "on_end must be several"),
            ([{"queue_url": "https://q"}], "needs a type"),
            ([{"type": "pager"}], "not a TargetType: name one of step_functions"),
            ([{"type": "sqs", "when": "later"}], "not a When: name one of complete"),
            ([{"type": "sqs", "queue": "https://q"}], "has no 'queue'"),
        ],
    )
    def test_anything_else_is_refused_and_the_message_says_why(self, given, why):
        with pytest.raises(InvalidRequest, match=why):
            targets(given)


@pytest.mark.parametrize("ranges", [(0, 5), 5, [(0, 5, 9)], ["0-5"]])
def test_what_is_not_pairs_of_ordinals_is_refused(ranges):
    with pytest.raises(InvalidRequest, match=r"ranges must be several, such as \[\(0, 10\)\]"):
        selection(ranges=ranges)


def test_one_error_and_pairs_of_ordinals_are_a_selection():
    chosen = selection("disk full", [(0, 10), OrdinalRange(20, 30)])
    assert chosen.errors == ("disk full",)
    assert chosen.ranges == (OrdinalRange(0, 10), OrdinalRange(20, 30))
    assert selection(["a", "b"]).errors == ("a", "b")
