"""docs/reference/alarms.md: every alarm has a runbook, and its description names it."""

import json
import re
from itertools import chain
from pathlib import Path

import pytest
from aws_cdk import aws_cloudwatch as cloudwatch

from fanin.entry import streams
from fanin_cdk.alarms import RUNBOOKS
from fanin_cdk.events import STREAM_READERS
from tests.docs.anchors import anchors
from tests.infra.conftest import everything, synthesized

TEXT = (Path(__file__).parents[2] / RUNBOOKS).read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def alarms() -> dict[str, str]:
    """Name of each alarm of both stacks → its description."""
    constructs = (one.stack.node.find_all() for one in (synthesized(), everything().jobs))
    return {
        construct.node.id: construct.node.default_child.alarm_description
        for construct in chain(*constructs)
        if isinstance(construct, cloudwatch.Alarm)
    }


def test_an_alarm_names_the_section_that_has_it(alarms):
    for name, description in alarms.items():
        # Given the section that the description of an alarm names
        (anchor,) = re.findall(rf"\(what to do: {re.escape(RUNBOOKS)}#([a-z-]+)\)$", description)
        (body,) = [body for heading, body in SECTIONS.items() if anchors(f"# {heading}") == {anchor}]
        # Then it has the alarm, and says what to look at and what to do
        assert f"`{name}`" in body, name
        assert re.search(r"look at", body, re.IGNORECASE), name
        assert re.search(r"\*\*Do\*\*|\| do \|", body), name


def test_no_runbook_is_of_an_alarm_that_there_is_not(alarms):
    told = set()
    for body in SECTIONS.values():
        told |= set(re.findall(r"^(?:\| )?`([\w ]+)`(?: \||:)", body, re.MULTILINE))
    assert told == alarms.keys()


def test_no_page_names_an_alarm_that_there_is_not(alarms):
    named = {
        name
        for page in (Path(__file__).parents[2] / "docs").rglob("*.md")
        for some in re.findall(r"\balarms? ((?:`\w+`(?:,| and)?\s*)+)", page.read_text())
        for name in re.findall(r"`(\w+)`", some)
    }
    assert named
    assert named <= alarms.keys()


def test_moving_back_names_the_queue():
    """SQS knows no source of a message that a function sent to a dead-letter queue, as that of acks does."""
    (command,) = re.findall(r"^aws sqs start-message-move-task .*$", TEXT, re.MULTILINE)
    assert "--destination-arn" in command


@pytest.mark.parametrize("name", STREAM_READERS)
def test_notes_of_lambda_are_not_moved_back(name):
    # Given a note, as Lambda leaves it in the dead-letter queue of a function that crashed
    note = {"DDBStreamBatchInfo": {"shardId": "shardId-1", "startSequenceNumber": "8", "batchSize": 1}}
    message = {"eventSource": "aws:sqs", "messageId": "1", "body": json.dumps(note)}
    # Then the function cannot handle it, because the record is not in it
    answer = streams.consume({"Records": [message]}, lambda records: [r["dynamodb"] for r in records], print)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    # And the runbook of its alarm says what to do with it
    (row,) = re.findall(rf"^\| `{name}Dead` \|.*$", TEXT, re.MULTILINE)
    assert "(#notes-of-lambda)" in row
