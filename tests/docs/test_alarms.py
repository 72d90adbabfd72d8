"""docs/reference/alarms.md: every alarm has a runbook, and its description names it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch

from fanin.entry import streams
from fanin_cdk import FaninStack, PipelineStack, Settings
from fanin_cdk.alarms import RUNBOOKS
from fanin_cdk.events import STREAM_READERS
from tests.docs.anchors import anchors
from tests.infra.conftest import UNBUNDLED

TEXT = (Path(__file__).parents[2] / RUNBOOKS).read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))


def created() -> Iterator[tuple[str, str]]:
    """Name and description of each alarm of both stacks."""
    app = cdk.App(context=UNBUNDLED)
    stack = FaninStack(app, "fanin", settings=Settings(pipeline=True))
    for one in (stack, PipelineStack(app, "pipeline", tracker=stack.tracker)):
        for construct in one.node.find_all():
            if isinstance(construct, cloudwatch.Alarm):
                yield construct.node.id, construct.node.default_child.alarm_description


ALARMS = list(created())


@pytest.mark.parametrize(("name", "description"), ALARMS, ids=[name for name, _ in ALARMS])
def test_an_alarm_names_the_section_that_has_it(name, description):
    # Given the section that the description of an alarm names
    (anchor,) = re.findall(rf"\(what to do: {re.escape(RUNBOOKS)}#([a-z-]+)\)$", description)
    (body,) = [body for heading, body in SECTIONS.items() if anchors(f"# {heading}") == {anchor}]
    # Then it has the alarm, and says what to look at and what to do
    assert f"`{name}`" in body
    assert re.search(r"look at", body, re.IGNORECASE)
    assert re.search(r"\*\*Do\*\*|\| do \|", body)


def test_no_runbook_is_of_an_alarm_that_there_is_not():
    told = set()
    for body in SECTIONS.values():
        told |= set(re.findall(r"^(?:\| )?`([\w ]+)`(?: \||:)", body, re.MULTILINE))
    assert told == {name for name, _ in ALARMS}


def test_no_page_names_an_alarm_that_there_is_not():
    named = {
        name
        for page in (Path(__file__).parents[2] / "docs").rglob("*.md")
        for alarms in re.findall(r"\balarms? ((?:`\w+`(?:,| and)?\s*)+)", page.read_text())
        for name in re.findall(r"`(\w+)`", alarms)
    }
    assert named
    assert named <= {name for name, _ in ALARMS}


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
