"""Failures of dead messages, with what is kept of these."""

from dataclasses import replace

import pytest

from fanin.app.ports.parts import RetryRow
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.limits import MAX_REASON
from fanin.domain.marks import Failure
from fanin.entry.kept_messages import dead_failure, kept_message

SOURCE = "arn:aws:sqs:eu-west-1:000000000000:work"
RECORD = {
    "messageId": "m",
    "body": "private",
    "attributes": {"ApproximateReceiveCount": "4", "DeadLetterQueueSourceArn": SOURCE},
    "messageAttributes": {
        "fanin-item": {"stringValue": "1:g:0", "dataType": "String"},
        "blob": {"binaryValue": "AP8=", "dataType": "Binary"},
    },
    "eventSourceARN": f"{SOURCE}-dead",
}
UNSAID = RECORD | {"attributes": {"ApproximateReceiveCount": "4"}}
LAST = RetryRow(0, 4, "no price", "", 0)


def test_a_dead_message_is_kept_with_its_count_and_the_queue_it_died_in():
    message = KeptMessage("private", {"blob": MessageAttribute("Binary", b"\x00\xff")})

    reason = "dead letter: received 4 times from work: no price"
    kept = dead_failure(RECORD, "1:g:0", SOURCE, LAST, kept=True)
    assert kept == Failure("1:g:0", reason, message, 4, SOURCE)
    assert dead_failure(RECORD, "1:g:0", SOURCE, LAST, kept=False) == replace(kept, message=None)


def test_a_long_error_is_cut_off():
    long = LAST._replace(error="x" * 2_000)
    assert len(dead_failure(RECORD, "1:g:0", SOURCE, long, kept=False).reason) == MAX_REASON


def test_without_a_known_source_the_reason_names_the_queue_of_dead_letters():
    failure = dead_failure(UNSAID, "1:g:0", "", None, kept=False)

    assert (failure.reason, failure.source) == ("dead letter: received 4 times from work-dead", "")


@pytest.mark.parametrize("queue", ["work", SOURCE, "https://sqs.eu-west-1.amazonaws.com/000000000000/work"])
def test_where_sqs_does_not_say_the_source_the_last_attempt_does(queue):
    failure = dead_failure(UNSAID, "1:g:0", "", LAST._replace(queue=queue), kept=False)

    assert (failure.reason, failure.source) == ("dead letter: received 4 times from work: no price", SOURCE)


def test_attributes_of_an_event_made_by_hand_need_no_type():
    record = {"body": "b", "messageAttributes": {"kind": {"stringValue": "a"}}}

    assert kept_message(record) == KeptMessage("b", {"kind": MessageAttribute("String", "a")})


def test_a_body_is_in_no_text_of_a_failure():
    assert "private" not in repr(dead_failure(RECORD, "1:g:0", SOURCE, None, kept=True))
