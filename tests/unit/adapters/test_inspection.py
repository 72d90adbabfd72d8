import json
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from fanin.adapters.inspection import FRESH_MS, MOST, AwsQueueInspection
from fanin.adapters.memory import FixedClock
from fanin.app.ports.queues import Figures, FunctionTrouble, QueueMapping, QueueReport

ARN = "arn:aws:sqs:eu-west-1:1:work"
URL = "https://sqs.eu-west-1.amazonaws.com/1/work"
FUNCTION = "arn:aws:lambda:eu-west-1:1:function:importer"
ATTRIBUTES = {
    "QueueArn": ARN,
    "ApproximateNumberOfMessages": "7",
    "ApproximateNumberOfMessagesNotVisible": "2",
    "ApproximateNumberOfMessagesDelayed": "1",
    "MessageRetentionPeriod": "345600",
    "RedrivePolicy": json.dumps({"deadLetterTargetArn": f"{ARN}-dlq", "maxReceiveCount": "5"}),
}


class Aws:
    """The three clients, which answer as they are told, or raise.

    Attributes:
        failing: operation → code of the error that it raises.
        asked: operations, in order.
    """

    def __init__(self) -> None:
        self.meta = SimpleNamespace(region_name="eu-west-1")
        self.failing: dict[str, str] = {}
        self.asked: list[str] = []
        self.attributes = {URL: ATTRIBUTES, f"{URL}-dlq": {**ATTRIBUTES, "RedrivePolicy": ""}}
        self.mappings: list[dict[str, str]] = [
            {"FunctionArn": f"{FUNCTION}:live", "State": "Enabled", "UUID": "4e97"}
        ]
        self.values = {"throttles_0": [2.0, 3.0], "errors_0": []}
        self.queries: list[dict[str, Any]] = []

    def _ask(self, operation: str) -> None:
        self.asked.append(operation)
        code = self.failing.get(operation)
        if code == "no answer":
            raise EndpointConnectionError(endpoint_url="https://sqs")
        if code:
            raise ClientError({"Error": {"Code": code, "Message": "secret of AWS"}}, operation)

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> Any:  # noqa: N803
        self._ask("dead" if QueueUrl.endswith("-dlq") else "queue")
        return {"Attributes": {name: self.attributes[QueueUrl][name] for name in AttributeNames}}

    def list_event_source_mappings(self, *, EventSourceArn: str) -> Any:  # noqa: N803
        self._ask("mappings")
        assert EventSourceArn == ARN
        return {"EventSourceMappings": self.mappings}

    def get_metric_data(self, **query: Any) -> Any:
        self._ask("metrics")
        self.queries.append(query)
        return {"MetricDataResults": [{"Id": key, "Values": values} for key, values in self.values.items()]}

    def inspection(self, clock: FixedClock) -> AwsQueueInspection:
        clients: Any = self
        return AwsQueueInspection(clock, lambda: clients, lambda: clients, lambda: clients)

    def look(self, *urls: str) -> list[QueueReport]:
        return self.inspection(FixedClock()).look(urls)


@pytest.fixture
def aws() -> Aws:
    return Aws()


def test_a_queue_is_seen_with_four_requests(aws):
    (report,) = aws.look(URL)

    assert report == QueueReport(
        URL,
        figures=Figures(7, 2, 1, 345_600, f"{ARN}-dlq", 5),
        dead=10,
        consumers=(QueueMapping("importer", True, "Enabled", "4e97"),),
        troubles=(FunctionTrouble("importer", 5, 0, 15),),
    )
    assert aws.asked == ["queue", "dead", "mappings", "metrics"]
    (query,) = aws.queries
    assert (query["EndTime"] - query["StartTime"]).total_seconds() == 900


@pytest.mark.parametrize(
    ("state", "enabled"),
    [("Creating", True), ("Enabling", True), ("Updating", True), ("Disabling", False), ("Disabled", False)],
)
def test_a_mapping_counts_as_enabled_while_lambda_polls_or_will(aws, state, enabled):
    aws.mappings[0]["State"] = state

    assert aws.look(URL)[0].consumers == (QueueMapping("importer", enabled, state, "4e97"),)


def test_a_queue_without_dead_letters_and_consumers_takes_two_requests(aws):
    aws.attributes[URL] = {**ATTRIBUTES, "RedrivePolicy": ""}
    aws.mappings = []

    (report,) = aws.look(URL)

    assert (report.dead, report.consumers, report.troubles, report.unseen) == (None, (), (), ())
    assert aws.asked == ["queue", "mappings"]


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
@pytest.mark.parametrize(
    ("operation", "what"),
    [
        ("dead", "its dead-letter queue"),
        ("mappings", "its event source mappings"),
        ("metrics", "the metrics of its consumers"),
        ("queue", "its figures"),
    ],
)
def test_what_may_not_be_read_is_said_and_the_rest_is_read(aws, operation, what, code):
    aws.failing[operation] = code

    (report,) = aws.look(URL)

    assert report.unseen == (f"{what} ({code})",)
    assert report.exists
    if operation != "queue":
        assert report.figures is not None


def test_no_answer_is_said_too(aws):
    aws.failing["queue"] = "no answer"

    assert aws.look(URL)[0].unseen == ("its figures (EndpointConnectionError)",)


@pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])
def test_a_queue_that_does_not_exist_is_gone(aws, code):
    aws.failing["queue"] = code

    assert not aws.look(URL)[0].exists


def test_a_queue_is_looked_at_once_for_all_diagnoses_of_some_seconds(aws):
    """Lambda allows an account 15 requests a second, and a run of the reaper diagnoses many batches."""
    # Given a queue that was looked at
    clock = FixedClock()
    inspection = aws.inspection(clock)
    first = inspection.look([URL])
    # When more batches that were sent to it are diagnosed
    clock.advance(FRESH_MS - 1)
    again = inspection.look([URL])
    # Then nobody is asked; a little later, its figures are read anew
    assert again == first
    assert len(aws.asked) == 4
    clock.advance(1)
    inspection.look([URL])
    assert len(aws.asked) == 8


def test_as_many_queues_are_remembered_as_a_process_may_need(aws):
    aws.failing["queue"] = "AccessDenied"
    inspection = aws.inspection(FixedClock())

    for number in range(MOST + 1):
        inspection.look([f"{URL}{number}"])
    inspection.look([f"{URL}{MOST}"])
    assert len(aws.asked) == MOST + 1

    inspection.look([f"{URL}0"])
    assert len(aws.asked) == MOST + 2


def test_several_queues_are_reported_in_order(aws):
    aws.attributes[f"{URL}2"] = ATTRIBUTES

    assert [report.queue for report in aws.look(URL, f"{URL}2")] == [URL, f"{URL}2"]


def test_its_requests_are_requests_of_boto3():
    """The clients skip the check of parameters, so it is made here, and on SQS against moto."""
    with mock_aws():
        sqs = boto3.client("sqs")
        url = sqs.create_queue(QueueName="work")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody="x")
        looking = AwsQueueInspection(
            FixedClock(), lambda: sqs, lambda: boto3.client("lambda"), lambda: boto3.client("cloudwatch")
        )

        (report,) = looking.look([url])

    assert report.figures is not None
    assert (report.figures.visible, report.consumers, report.unseen) == (1, (), ())


@pytest.mark.parametrize(
    ("url", "exists"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/1/work", False),
        ("https://eu-west-1.queue.amazonaws.com/1/work", False),
        ("https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/work", False),
        ("https://sqs.us-east-1.amazonaws.com/1/work", True),
        ("https://us-east-1.queue.amazonaws.com/1/work", True),
    ],
)
def test_a_queue_of_another_region_is_not_seen_and_not_called_gone(aws, url, exists):
    """SQS of this region looks for it by account and name, and finds none."""
    aws.failing["queue"] = "QueueDoesNotExist"

    (report,) = aws.look(url)

    assert report == QueueReport(url, exists=exists, unseen=("its figures (QueueDoesNotExist)",))


def test_a_dead_letter_queue_that_is_gone_does_not_make_its_source_gone(aws):
    aws.failing["dead"] = "QueueDoesNotExist"

    (report,) = aws.look(URL)

    assert report.exists
    assert report.unseen == ("its dead-letter queue (QueueDoesNotExist)",)
