"""Targets: which ends they are told of, and what a reader may see of them."""

from __future__ import annotations

import pytest

from fanin.domain.targets import FIELD, Target, TargetState, TargetType, When


@pytest.mark.parametrize(
    ("when", "succeeded", "wanted"),
    [
        (When.ANY, True, True),
        (When.ANY, False, True),
        (When.COMPLETE, True, True),
        (When.COMPLETE, False, False),
        (When.FAILED, True, False),
        (When.FAILED, False, True),
    ],
)
def test_a_target_hears_of_the_ends_that_it_asked_for(when: When, succeeded: bool, wanted: bool) -> None:
    assert Target(TargetType.SQS, when).wants(succeeded) is wanted


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (Target(TargetType.STEP_FUNCTIONS, task_token="A" * 600 + "wxyz"), "…wxyz"),
        (Target(TargetType.STEP_FUNCTIONS, task_token="A" * 5), "…"),
        (Target(TargetType.DURABLE_CALLBACK, callback_id="B" * 60 + "abcd"), "…abcd"),
        (Target(TargetType.SQS, queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/next"), "next"),
        (
            Target(TargetType.WEBHOOK, url="https://hooks.example.com/T0/secret?key=1"),
            "https://hooks.example.com/…",
        ),
    ],
)
def test_where_a_target_points_is_shown_masked(target: Target, shown: str) -> None:
    assert target.to == shown
    # And a log that prints the value itself shows nothing either
    secret = next(value for name in FIELD.values() if (value := getattr(target, name)))
    assert secret not in repr(target)


def test_what_is_settled_needs_no_more_jobs() -> None:
    assert {state for state in TargetState if state.settled} == {TargetState.DELIVERED, TargetState.SKIPPED}


def test_each_type_says_where_it_is_in_one_field() -> None:
    assert set(FIELD) == set(TargetType)
    assert len(set(FIELD.values())) == len(FIELD)
