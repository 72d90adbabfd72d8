"""A queue that is not there is told before anything is staged."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.errors import InvalidRequest, NotConfigured, ServiceUnavailable
from fanin.spark.fanout.opening import check_queue, check_url

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/work"


class Sqs:
    """A client for which ``GetQueueAttributes`` fails with a code, or not."""

    def __init__(self, code: str = "", status: int = 400, message: str = "as SQS says it") -> None:
        self._code, self._status, self._message, self.asked = code, status, message, list[str]()

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:  # noqa: N803
        self.asked.append(QueueUrl)
        if self._code:
            told = {
                "Error": {"Code": self._code, "Message": self._message},
                "ResponseMetadata": {"HTTPStatusCode": self._status},
            }
            raise ClientError(told, "GetQueueAttributes")  # type: ignore[arg-type]
        return {"Attributes": dict.fromkeys(AttributeNames, "")}


@pytest.mark.parametrize("url", [URL, "http://127.0.0.1:4566/000000000000/work.fifo"])
def test_a_url_is_taken(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the URL of the queue is empty; if it comes from a variable, set that"),
        ("work", "'work' is not the URL of a queue, which looks like https://"),
        ("arn:aws:sqs:eu-west-1:123456789012:work", "is not the URL of a queue"),
        ("https:///work", "is not the URL of a queue"),
        ("https://[", "is not the URL of a queue"),
    ],
)
def test_what_is_not_a_url_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        check_url(text)


@pytest.mark.parametrize(
    ("code", "message", "seen"),
    [
        ("", "", True),
        ("AccessDenied", "no", False),
        ("QueueDoesNotExist", "The specified queue does not exist or you do not have access to it.", False),
    ],
)
def test_a_queue_that_is_there_or_may_not_be_looked_at_is_taken(
    capsys: pytest.CaptureFixture[str], code: str, message: str, seen: bool
) -> None:
    sqs = Sqs(code, message=message)
    check_queue(sqs, URL)  # type: ignore[arg-type]
    assert sqs.asked == [URL]
    assert ("this job may not look at" in capsys.readouterr().err) is not seen


@pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])
def test_a_queue_that_is_not_there_is_refused(code: str) -> None:
    with pytest.raises(NotConfigured, match=r"check the URL and.* has staged and sent nothing$") as told:
        check_queue(Sqs(code), URL)  # type: ignore[arg-type]
    assert URL in str(told.value)


def test_that_sqs_does_not_answer_is_told() -> None:
    with pytest.raises(ServiceUnavailable):
        check_queue(Sqs("InternalError", 500), URL)  # type: ignore[arg-type]
