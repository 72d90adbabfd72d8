"""The queue of targets: jobs that failed come again, each on its own."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from fanin import names
from fanin.app.ports.events import Event
from fanin.app.ports.queues import ChannelNotice
from fanin.app.redrives.records import WORK_MS
from fanin.app.targets.delivery import JobOutcome
from fanin.app.targets.records import TargetJob
from fanin.entry import observe
from fanin.entry.jobs import deliver_targets, redrive
from fanin.errors import ServiceUnavailable, Throttled
from tests.unit.entry.test_queues import event, failed

JOB = TargetJob(
    7, 0, ChannelNotice(Event("7.complete", "Batch Completed", {"metadata": "private"}, 5), succeeded=True), 9
)


def message(number: int, body: str | None = None, received: int = 1) -> dict[str, Any]:
    return {
        "messageId": f"m{number}",
        "receiptHandle": f"h{number}",
        "body": json.dumps({**JOB.encode(), "target": number}) if body is None else body,
        "attributes": {"ApproximateReceiveCount": str(received)},
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:targets",
    }


@pytest.fixture(autouse=True)
def _no_metrics() -> Any:
    observe.counted.clear()
    yield
    observe.counted.clear()


def counted() -> set[str]:
    return {name for name, value in observe.counted.items() if value}


def run(
    *messages: dict[str, Any], outcomes: dict[int, JobOutcome | Exception]
) -> tuple[list[str], list[int]]:
    """The ids of messages to deliver again, and how many seconds later."""
    waits: list[int] = []

    def deliver(job: TargetJob) -> JobOutcome:
        outcome = outcomes[job.number]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def postpone(asked: Sequence[tuple[Any, int]]) -> None:
        waits.extend(seconds for _, seconds in asked)

    answer = deliver_targets({"Records": list(messages)}, deliver, postpone)
    return [failed["itemIdentifier"] for failed in answer["batchItemFailures"]], waits


def test_jobs_are_handled_each_on_its_own():
    outcomes: dict[int, JobOutcome | Exception] = {
        0: JobOutcome.DELIVERED,
        1: JobOutcome.AGAIN,
        2: Throttled("busy"),
        3: JobOutcome.PARKED,
        4: ValueError("a defect"),
        5: JobOutcome.NOTHING,
    }
    again, waits = run(*map(message, range(6)), outcomes=outcomes)
    assert again == ["m1", "m2", "m4"]
    assert len(waits) == 3
    assert counted() == {
        names.METRIC_TARGETS_DELIVERED,
        names.METRIC_TARGETS_FAILED,
        names.METRIC_TARGETS_PARKED,
    }


@pytest.mark.parametrize(("outcome", "said"), [(JobOutcome.AGAIN, "again"), (JobOutcome.PARKED, "parked")])
def test_the_log_says_of_a_target_that_was_not_told_what_becomes_of_it(outcome, said, caplog):
    run(message(3), outcomes={3: outcome})

    (line,) = [record.__dict__ for record in caplog.records if record.message == "target not told"]
    assert {name: line[name] for name in ("batch_id", "target", "outcome")} == {
        "batch_id": 7,
        "target": 3,
        "outcome": said,
    }


@pytest.mark.parametrize("body", ["{", "[]", "{}", "null"])
def test_a_message_that_is_not_a_job_becomes_a_dead_letter_in_time(body):
    again, _ = run(message(0, body), message(1), outcomes={1: JobOutcome.DELIVERED})
    assert again == ["m0"]


def test_messages_that_cannot_be_postponed_come_again_all_the_same():
    def postpone(_: object) -> None:
        raise ServiceUnavailable("no answer")

    answer = deliver_targets({"Records": [message(0)]}, lambda _: JobOutcome.AGAIN, postpone)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}


def test_no_log_shows_what_is_told(caplog, capsys):
    run(message(0), message(1, "private"), outcomes={0: JobOutcome.PARKED})
    assert "private" not in caplog.text + "".join(capsys.readouterr())


# The queue of redrives.


class Service:
    """Takes jobs; some fail."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.done: list[tuple[Any, ...]] = []

    def work(self, batch_id: int, name: str, owner: str, *, until: int) -> None:
        error = self.errors.pop(0)
        if error:
            raise error
        self.done.append((batch_id, name, owner, until))


JOB_REDRIVES = {"batch_id": 7, "redrive": "redrive/x/000000", "owner": "me"}


def test_one_job_that_fails_spares_the_others():
    # Given four jobs, of which one is not JSON, one meets an overload, and one a defect
    service = Service(Throttled("busy"), ValueError("a defect"), None)
    answer = redrive(event("{", JOB_REDRIVES, JOB_REDRIVES, JOB_REDRIVES), service, lambda: 1_000)
    assert failed(answer) == ["m0", "m1", "m2"]
    assert service.done == [(7, "redrive/x/000000", "me", 1_000 + WORK_MS)]
