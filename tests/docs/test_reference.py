"""The pages of the reference are what the code makes of them, or say what it says."""

import json
import re
from itertools import chain
from pathlib import Path

import pytest
from aws_cdk import aws_cloudwatch as cloudwatch

from docs.site import event_details
from docs.site.event_details import STORIES, Story
from docs.site.generated import FOLDER, PAGES
from fanin import names
from fanin.cli.exits import ExitCode
from fanin.domain import ids, limits
from fanin.domain.batch import MAX_MILESTONES, WHOLE
from fanin.domain.marks import WEIGHT
from fanin.domain.targets import MAX_TARGETS
from fanin.domain.totals import MAX_TOTALS
from fanin.entry import observe, streams
from fanin_cdk.alarms import RUNBOOKS
from fanin_cdk.events import STREAM_READERS
from tests.docs.anchors import anchors
from tests.infra.conftest import everything, synthesized


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_as_the_code_makes_it(name):
    assert (FOLDER / name).read_text() == PAGES[name](), "run: python -m docs.site"


def test_every_event_that_fanin_sends_has_its_example():
    named = {
        value
        for name, value in vars(names).items()
        if re.match(r"(BATCH_STALLED|GATHER_|INSTANCE_(?!EVENTS))", name)
    }
    followed = set(names.INSTANCE_EVENTS)
    frames = {
        "Frame Completed",
        "Frame Timed Out",
        "Frame Cancelled",
    }  # idle ones time out, and are never orphaned
    ends = {*names.DETAIL_TYPES.values(), *names.EARLY_TYPES.values(), *frames}
    assert {story.detail_type for story in STORIES} == named - followed | ends


def test_a_story_without_its_event_is_an_error():
    def nothing(service):
        service.tracker.open()

    with pytest.raises(LookupError, match="no Batch Completed was sent, but"):
        event_details.sent(Story("Batch Completed", "", "", "", nothing))


PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()


@pytest.mark.parametrize("code", ExitCode)
def test_exit_codes_are_documented(code):
    assert re.search(rf"^ *{code.value}  {re.escape(code.meaning)}$", PAGE, re.MULTILINE)


def test_usage_is_what_is_typed():
    usages = re.findall(r"^Usage: (fanin.*?)(?: \[| \{|$)", PAGE, re.MULTILINE)
    assert usages == re.findall(r"^## (fanin.*)$", PAGE, re.MULTILINE)


TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text()
DAY = 86_400
KIB = 1_024


def test_every_limit_is_the_one_of_the_code():
    assert dict(re.findall(r"^\| (?!limit|---)(.+?) \| (.+?) \|$", TEXT, re.MULTILINE)) == {
        "items of a batch": f"2^{ids.MAX_ITEMS.bit_length() - 1}, about 10^12",
        "items that one call adds": f"2^{(ids.MAX_COUNT + 1).bit_length() - 1} - 1",
        "key of an item": f"{ids.MAX_KEY} bytes in UTF-8",
        "keys that one call adds": f"{ids.MAX_KEYS}",
        "weight of the marks of one call": (
            f"{limits.MAX_MARKS:,}: an id 1; a failure, a range or a count {WEIGHT}"
        ),
        "pending items of a bounded batch": f"{limits.MAX_LIMIT:,}",
        "lifetime of a batch": (
            f"{limits.MIN_LIFETIME // 60} minute to {limits.MAX_LIFETIME // DAY} days; 30 days by default"
        ),
        "metadata": (
            f"{limits.MAX_METADATA} pairs of {limits.MAX_METADATA_KEY}"
            f" and {limits.MAX_METADATA_VALUE} characters"
        ),
        "totals of a batch": f"{MAX_TOTALS}",
        "result of an item, as JSON": f"{limits.MAX_RESULT // KIB**2} MiB",
        "targets of a batch": f"{MAX_TARGETS}",
        "milestones of a batch": f"{MAX_MILESTONES} whole percents, from 1 to {WHOLE}",
        "kept message of a failed item": (
            f"{limits.MAX_KEPT_INLINE // KIB} KiB in a row; larger ones are in the bucket, or in a row of"
            f" up to {limits.MAX_KEPT_IN_ROW // KIB} KiB where there is none"
        ),
        "messages that one call of failures brings": f"{limits.MAX_FAILED_MESSAGES // KIB**2} MiB",
        "recipients of a scatter": f"{limits.MAX_RECIPIENTS:,}",
        "message or reply of a scatter": (
            f"{limits.MAX_REPLY // KIB} KiB; larger ones by a claim check,"
            f" of up to {limits.MAX_CLAIM // KIB**3} GiB"
        ),
        "repeats of a scatter": f"{limits.MAX_RETRIES}",
        "attributes of your own on a scatter's message": f"{limits.MAX_ATTRIBUTES}",
        "payloads of a put into a buffer": (
            f"{limits.MAX_WORK}, and {limits.MAX_PAYLOAD // KIB} KiB together"
        ),
        "longest wait for work of a buffer": f"{limits.MAX_WAIT} seconds",
        "envelopes that one call claims": f"{limits.MAX_CLAIMS:,}",
        "lease of an envelope": f"{limits.MAX_ENVELOPE_LEASE // 3_600} hours",
        "lease of a registration": f"{limits.MIN_LEASE} seconds to {limits.MAX_LEASE // DAY} days",
        "pattern of a route": f"{limits.MAX_PATTERN:,} characters of JSON",
        "routed event": f"{limits.MAX_EVENT // KIB} KiB",
        "rows that one call of the API reads": f"{limits.MAX_ROWS}",
    }


MESSAGES_TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "messages.md").read_text()
MESSAGES = {value for name, value in vars(names).items() if name.startswith("MESSAGE_")}


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def test_it_has_every_attribute_and_every_tag():
    attributes = {
        value
        for name, value in vars(names).items()
        if name == "ITEM_ATTRIBUTE" or name.startswith("ATTRIBUTE_")
    }
    tags = {value for name, value in vars(names).items() if name.endswith("_TAG")}
    assert sorted(first_cells(MESSAGES_TEXT)) == sorted(attributes | tags)


def test_it_has_the_types_of_messages_that_frames_send():
    (row,) = [line for line in MESSAGES_TEXT.splitlines() if line.startswith(f"| `{names.ATTRIBUTE_TYPE}` |")]
    assert set(re.findall(r"`([A-Z][\w ]+)`", row)) == MESSAGES


ROOT = Path(__file__).parents[2]
METRICS_TEXT = (ROOT / "docs" / "reference" / "metrics.md").read_text()
ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in METRICS_TEXT.splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line.strip("| ").split(" | ")]]
}
CONSTANTS = {name: value for name, value in vars(names).items() if name.startswith("METRIC_")}
SOURCES = (ROOT / "layers" / "fanin" / "python" / "fanin", ROOT / "functions")
CODE = {
    path: path.read_text()
    for folder in SOURCES
    for path in folder.rglob("*.py")
    if path.name != "names.py" and "console" not in path.parts
}


def test_it_has_every_metric_and_no_other():
    assert sorted(ROWS) == sorted(CONSTANTS.values())


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_metric_is_written_somewhere(constant):
    assert [path for path, code in CODE.items() if re.search(rf"\b{constant}\b", code)]


def test_it_names_the_functions_that_there_are():
    named = {who for _, writers, *_ in ROWS.values() for who in writers.split(", ")}
    assert named - {"consumers in Lambda"} <= {
        path.parent.name for path in ROOT.glob("functions/*/handler.py")
    }


def test_its_namespace_dimension_and_unit_are_those_that_are_written():
    # When a metric is recorded as functions record it
    observe.metrics.clear_metrics()
    observe.gauge(names.METRIC_BUFFER_WAIT, 7)
    ((unit, values),) = [
        (one["Unit"], one["StorageResolution"]) for one in observe.metrics.metric_set.values()
    ]
    observe.metrics.clear_metrics()
    # Then the page has said so
    assert (unit, values) == ("Count", 60)
    assert f"the namespace `{names.METRICS_NAMESPACE}`" in METRICS_TEXT
    assert f"`{names.CONSUMERS}`" in METRICS_TEXT
    assert "The unit is *Count* for all of them" in METRICS_TEXT


ALARMS_TEXT = (Path(__file__).parents[2] / RUNBOOKS).read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", ALARMS_TEXT, re.MULTILINE | re.DOTALL))


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
    (command,) = re.findall(r"^aws sqs start-message-move-task .*$", ALARMS_TEXT, re.MULTILINE)
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
    (row,) = re.findall(rf"^\| `{name}Dead` \|.*$", ALARMS_TEXT, re.MULTILINE)
    assert "(#notes-of-lambda)" in row
