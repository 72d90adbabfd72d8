"""SQS's errors as errors of fanin.

What every queue takes as a message.
"""

import pytest
from botocore import exceptions

from fanin.adapters.aws import blames_content
from fanin.client.sqs import check_body, queue_errors, refusal_text
from fanin.errors import (
    AccessDenied,
    InvalidRequest,
    NotConfigured,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from tests.unit.client.conftest import refusal

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/work"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (refusal("AccessDenied", 403), AccessDenied),
        (refusal("AccessDeniedException"), AccessDenied),
        (refusal("ExpiredToken", 403), AccessDenied),
        (refusal("InvalidClientTokenId", 403), AccessDenied),
        (refusal("SignatureDoesNotMatch", 403), AccessDenied),
        (refusal("AWS.SimpleQueueService.NonExistentQueue"), NotConfigured),
        (refusal("QueueDoesNotExist"), NotConfigured),
        (refusal("ThrottlingException"), Throttled),
        (refusal("RequestThrottled", 403), Throttled),
        (refusal("InternalError", 500), ServiceUnavailable),
        (refusal("ServiceUnavailable", 503), ServiceUnavailable),
        (refusal("InvalidMessageContents"), InvalidRequest),
        (refusal("AWS.SimpleQueueService.BatchRequestTooLong"), RequestTooLarge),
        (refusal("InvalidParameterValue", text="Message must be shorter than 9 bytes"), RequestTooLarge),
        (exceptions.NoCredentialsError(), NotConfigured),
        (exceptions.NoRegionError(), NotConfigured),
        (exceptions.ParamValidationError(report="QueueUrl: missing"), InvalidRequest),
        (exceptions.EndpointConnectionError(endpoint_url="u"), ServiceUnavailable),
        (exceptions.ReadTimeoutError(endpoint_url="u"), ServiceUnavailable),
    ],
)
def test_an_error_of_sqs_becomes_fanins_and_keeps_its_cause(raised, expected):
    with pytest.raises(expected) as caught, queue_errors(URL):
        raise raised
    assert type(caught.value) is expected
    assert caught.value.__cause__ is raised


def test_the_message_names_the_queue_and_what_sqs_said():
    text = f"^{URL}: AccessDenied: sorry; check that your credentials"
    with pytest.raises(AccessDenied, match=text), queue_errors(URL):
        raise refusal("AccessDenied", 403)


def test_the_message_leaves_out_what_sqs_says_of_its_protocol():
    said = "The specified queue does not exist for this wsdl version."
    with pytest.raises(NotConfigured) as caught, queue_errors(URL):
        raise refusal("AWS.SimpleQueueService.NonExistentQueue", text=said)
    assert str(caught.value) == (
        f"{URL}: AWS.SimpleQueueService.NonExistentQueue: The specified queue does not exist;"
        " check the URL and region of the queue"
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("The message body is empty.", "InvalidMessageContents: The message body is empty"),
        ("Value 'a.b' is invalid", "InvalidMessageContents: Value 'a.b' is invalid"),
        ("", "InvalidMessageContents"),
        (None, "InvalidMessageContents"),
    ],
)
def test_a_refusal_is_the_code_with_what_sqs_said(message, text):
    assert refusal_text("InvalidMessageContents", message) == text


@pytest.mark.parametrize("error", [ZeroDivisionError(), Throttled("t")])
def test_other_errors_pass_as_they_are(error):
    with pytest.raises(type(error)) as caught, queue_errors(URL):
        raise error
    assert caught.value is error


def test_which_failures_blame_the_content():
    content = [
        "InvalidMessageContents",
        "InvalidParameterValue",
        "AWS.SimpleQueueService.BatchRequestTooLong",
    ]
    others = ["InternalError", "KmsAccessDenied", "MissingParameter", "RequestThrottled"]
    assert [code for code in content + others if blames_content(code)] == content


@pytest.mark.parametrize("body", ["\t\n\r ~", "\ud7ff\ue000\ufffd", "\U00010000\U0010ffff", "x" * 100])
def test_a_body_that_every_queue_takes(body):
    check_body(body, 100)


@pytest.mark.parametrize("bad", ["\x00", "\x08", "\x0b", "\x1f", "\ud800", "\ufffe", "\uffff"])
def test_a_body_with_a_character_outside_of_xml_is_refused(bad):
    with pytest.raises(InvalidRequest, match=rf"U\+{ord(bad):04X} at 2, which no SQS message"):
        check_body(f"ab{bad}c", 100)


def test_a_body_is_measured_in_utf_8():
    check_body("é" * 50, 100)
    with pytest.raises(RequestTooLarge, match="has 102 bytes, but a queue takes 100"):
        check_body("é" * 51, 100)
