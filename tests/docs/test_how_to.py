"""How-to pages without a file of their own: what they say is what the code does, and their examples run."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fanin import ReceivedMessage, Tracker, names
from fanin.adapters.callbacks import ERRORS, MAX_CAUSE
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Patterns, Services
from fanin.client.frames import envelopes
from fanin.client.messages import read_message
from fanin.domain.access import AccessGroup
from fanin.domain.batch import State, Trouble
from fanin.domain.costs import costs
from fanin.domain.directory import Register
from fanin.domain.frames import Hold
from fanin.domain.planning import needs
from fanin.domain.targets import FIELD, MAX_CALLBACK_ID, MAX_TASK_TOKEN, TargetState, TargetType, When
from fanin.entry.http.application import application
from fanin.entry.http.openapi import document
from fanin.entry.http.table import ROUTES
from fanin.errors import CorrelationIdAlive, InvalidRequest
from fanin.testing import InMemoryService
from fanin.types import Code, Known
from fanin_cdk import Settings
from tests.docs import pages
from tests.unit.entry.conftest import Client

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "how-to" / "access.md").read_text()
CALL = r"`((?:GET|POST|DELETE|PUT) /[^`]*)`"


def section(title: str) -> str:
    return re.split(r"^##+ ", TEXT.split(f" {title}\n")[1], flags=re.MULTILINE)[0]


def test_it_has_the_calls_of_every_group():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section("The calls of each group"), re.MULTILINE)
    told = {group: re.findall(CALL, calls) for group, calls in rows}
    assert told == {
        str(group): [f"{route.method} {route.path}" for route in ROUTES if route.group is group]
        for group in AccessGroup
    }


def test_it_has_the_calls_that_are_open_to_others_besides():
    rows = re.findall(
        rf"^\| {CALL} \| ([`a-z, ]+) \| .+ \|$", section("The calls of each group"), re.MULTILINE
    )
    told = {call: tuple(re.findall(r"\w+", groups)) for call, groups in rows}
    assert told == {
        f"{route.method} {route.path}": tuple(map(str, route.also)) for route in ROUTES if route.also
    }


def test_it_shows_the_problem_as_the_api_answers_it():
    services = Services(Memory().ports())
    call = Client(application(lambda: services, scope_prefix="fanin/"))
    call.authorizer = {"jwt": {"claims": {"sub": "ada", "scope": "fanin/read"}}}
    answer = call("POST", "/v1/batches/7/cancel")
    told = json.loads(section("Tokens").split("```json")[1].split("```")[0])
    assert {**answer.json, "request_id": told["request_id"]} == told


def test_the_document_has_the_group_and_the_scopes_of_every_call():
    paths = document(ROUTES)["paths"]
    for route in ROUTES:
        operation = paths[route.path][route.method.lower()]
        assert operation["x-fanin-group"] == route.group
        assert operation["x-fanin-scopes"] == [f"fanin/{group}" for group in route.groups]


def test_the_test_that_it_names_is_there():
    (name,) = re.findall(r"`(tests/\S+\.py)`", TEXT)
    assert "test_an_item_id_of_another_deployment_is_unknown" in (ROOT / name).read_text()


BUFFERS_TEXT = pages.text("how-to/patterns/buffers.md")


def test_its_examples_run(capsys):
    first, poison = pages.code("how-to/patterns/buffers.md")
    for example in (first, poison):
        exec(compile(example, "docs/how-to/patterns/buffers.md", "exec"), {})
    assert "3 items pending of at most 3" in capsys.readouterr().out


def test_it_has_every_metric():
    told = set(re.findall(r"`(Buffers?[A-Z]\w+)`", BUFFERS_TEXT))
    assert told == {
        names.METRIC_BUFFER_DEPTH,
        names.METRIC_BUFFER_REJECTS,
        names.METRIC_BUFFER_WAIT,
        names.METRIC_BUFFERS_UNREADABLE,
    }


SIGNALS = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture(params=SIGNALS, ids=lambda number: number.name)
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    before = {one: signal.getsignal(one) for one in SIGNALS}
    yield request.param
    for one, handler in before.items():
        signal.signal(one, handler)


def test_a_signal_lets_the_consumer_finish_what_it_has(number, capsys, monkeypatch):
    # Given a queue of more messages than one poll receives
    service = InMemoryService()
    queue_url = service.queue("rows")
    with service.tracker.batch() as batch:
        batch.send(queue_url, [str(n) for n in range(25)], workers=1)

    # When the signal comes while the third message is handled
    def import_row(message: ReceivedMessage) -> None:
        if message.body == "2":
            os.kill(os.getpid(), number)

    (example,) = pages.code("how-to/consuming.md")
    monkeypatch.setenv("QUEUE_URL", queue_url)
    monkeypatch.setattr(Tracker, "from_env", lambda: service.tracker)
    monkeypatch.setitem(sys.modules, "shop", SimpleNamespace(import_row=import_row))
    exec(compile(example, "docs/how-to/consuming.md", "exec"), {})
    # Then the messages of that poll are done, and no other was received
    assert capsys.readouterr().out == "stopped after 10 messages\n"
    assert service.tracker.status(batch.id, exact=True).done_min == 10
    assert service.tracker.consumer(queue_url, lambda _: None, wait=0).poll() == 10


DEADLINES_TEXT = pages.text("how-to/deadlines.md")


def test_the_fields_that_it_names_are_in_the_event():
    # Given a batch that has timed out
    service = InMemoryService()
    with service.tracker.batch(deadline=timedelta(minutes=10)) as batch:
        batch.add(1)
    service.advance(timedelta(minutes=10))
    (event,) = service.events_of(batch.id)
    # Then the event has each field of the table
    table = DEADLINES_TEXT.split("## What the event says")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert {"partial", "missing", "failures", "deadline"} <= named
    assert named <= set(event.detail)


def test_what_it_quotes_is_what_the_library_says():
    (quoted,) = re.findall(r"`InvalidRequest: (the deadline .+?)`", DEADLINES_TEXT)
    with pytest.raises(InvalidRequest, match=quoted):
        InMemoryService().tracker.open(deadline=timedelta(days=31))


DIAGNOSIS_TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "diagnosis.md").read_text()


def test_it_says_of_every_trouble_and_finding_what_to_do_in_their_order():
    told = re.findall(r"^\| `(\w+)` \|", DIAGNOSIS_TEXT, re.MULTILINE)
    assert told == [*Trouble, *Code]


def test_it_names_what_may_be_known_of_a_range():
    (sentence,) = re.findall(r"says what is known of it: (.+)\.$", DIAGNOSIS_TEXT, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", sentence)) == {known.value for known in Known}


FRAMES_TEXT = pages.text("how-to/patterns/frames.md")


def test_it_has_every_answer_to_a_claim():
    answers = FRAMES_TEXT.split("A claim answers")[1].split("Only the leaf")[0]
    assert set(re.findall(r"`(\w+)` \(", answers)) == {hold.value for hold in Hold}


def test_it_has_every_message_of_the_reply_channel():
    table = FRAMES_TEXT.split("## Over SQS")[1].split("## Envelopes")[0]
    assert set(re.findall(r"^\| `([A-Z].+?)` \|", table, re.MULTILINE)) == {
        names.MESSAGE_COMPLETE_FRAME,
        names.MESSAGE_REPEAT_REQUESTED,
        names.MESSAGE_FRAME_ENDED,
    }


def test_it_has_the_layout_of_the_protobuf_envelope():
    layout = FRAMES_TEXT.split("```proto")[1].split("```")[0]
    fields = dict(re.findall(r"^  \w+ (\w+) = (\d);", layout, re.MULTILINE))
    ours = {
        "frame": envelopes._FRAME,
        "index": envelopes._INDEX,
        "type": envelopes._TYPE,
        "other_type": envelopes._OTHER_TYPE,
        "payload": envelopes._PAYLOAD,
    }
    assert {name: int(number) for name, number in fields.items()} == ours
    types = re.findall(r"^  ([A-Z_]+) = (\d);", layout, re.MULTILINE)
    assert [int(number) for _, number in types] == list(range(len(envelopes._TYPES)))


SCATTERS_TEXT = pages.text("how-to/patterns/scatter-gather.md")
QUEUE = "https://sqs/car-7"


def example() -> dict[str, Any]:
    (code,) = pages.code("how-to/patterns/scatter-gather.md")
    names_of_it: dict[str, Any] = {}
    exec(compile(code, "docs/how-to/patterns/scatter-gather.md", "exec"), names_of_it)
    return names_of_it


def test_its_example_runs_and_its_tables_are_complete():
    # Given a registered car
    memory = Memory()
    memory.channels.queues[QUEUE] = []
    ledger = LedgerService(memory.ports(), Patterns(memory.ports()))
    tracker, code = Tracker(Services(ledger.ports)), example()
    tracker.directory.register(Register("fleet", "car-7", QUEUE))
    # When the example asks, answers and gathers
    batch_id = code["ask"](tracker, "fleet")
    for job in memory.jobs.waiting:
        ScatterService(ledger).send(job["batch_id"], job["chunk"], job["wave"])
    (sent,) = memory.channels.queues[QUEUE]
    attributes = {name: {"stringValue": value} for name, value in sent.attributes.items()}
    code["answer"](
        tracker, read_message({"messageId": "m", "body": sent.body, "messageAttributes": attributes})
    )
    # Then the reply is there, and the page names every attribute and field
    assert code["gathered"](tracker, batch_id) == {"car-7": {"vehicle": "car-7", "km": 312}}
    assert set(re.findall(r"^\| `(fanin-[a-z-]+)` \|", SCATTERS_TEXT, re.MULTILINE)) == set(sent.attributes)
    ledger.announce(memory.ports().batches.read([batch_id])[batch_id])
    detail = memory.events.published[-1].detail
    fields = SCATTERS_TEXT.split("## Gather Ready")[1].split("## Bounds")[0]
    told = {
        name
        for row in re.findall(r"^\| (`.+?) \|", fields, re.MULTILINE)
        for name in re.findall("`(.+?)`", row)
    }
    assert told <= set(detail)
    assert {"correlation_id", "received", "missing_recipients", "retries"} <= told


def test_its_problem_is_the_code_s():
    assert f"`{CorrelationIdAlive.code}`" in SCATTERS_TEXT
    assert f"`{names.ATTRIBUTE_REPLY_TO}`" in SCATTERS_TEXT


TARGETS_TEXT = (ROOT / "docs" / "how-to" / "targets.md").read_text()
EXAMPLE, DURABLE = re.findall(r"^```python\n(.*?)^```$", TARGETS_TEXT, re.MULTILINE | re.DOTALL)


def test_its_example_runs():
    exec(compile(EXAMPLE, "docs/how-to/targets.md", "exec"), {})


def test_its_durable_function_is_the_one_that_the_emulator_runs():
    deployed = ROOT / "tests" / "e2e" / "functions" / "durable" / "handler.py"
    assert deployed.read_text().partition('"""\n\n')[2] == DURABLE


def test_a_step_of_its_durable_function_that_is_repeated_sends_nothing_twice():
    # Given the step that fans out, and a service
    service = InMemoryService()
    queue = service.queue("orders")
    named = {
        "Tracker": SimpleNamespace(from_env=lambda: service.tracker),
        "os": SimpleNamespace(environ={"ORDERS_QUEUE_URL": queue}),
        "sha256": sha256,
    }
    (step,) = [
        node
        for node in ast.parse(DURABLE).body
        if isinstance(node, ast.FunctionDef) and node.name == "fan_out"
    ]
    exec(compile(ast.Module([step], []), "docs/how-to/targets.md", "exec"), named)
    # When it ran, and died before the checkpoint, so that it runs again
    for _ in range(2):
        named["fan_out"](["one", {"order": 2}], "bm90IGEgY2FsbGJhY2s=")
    # Then each order was sent once, in one batch, which is closed
    messages = service.sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )["Messages"]
    assert [message["Body"] for message in messages] == ["one", '{"order": 2}']
    assert [batch.items for batch in service.tracker.list(State.CLOSED).batches] == [2]
    # And its end calls back
    service.tracker.ack([m["MessageAttributes"]["fanin-item"]["StringValue"] for m in messages])
    (told,) = service.callbacks
    assert told.target.callback_id == "bm90IGEgY2FsbGJhY2s="


def test_it_has_every_type_with_its_field_and_its_limit():
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)`", TARGETS_TEXT, re.MULTILINE))
    assert rows == {kind.value: FIELD[kind] for kind in TargetType}
    assert f"`task_token`, up to {MAX_TASK_TOKEN:,} characters" in TARGETS_TEXT
    assert f"`callback_id`, up to {MAX_CALLBACK_ID:,} characters" in TARGETS_TEXT
    assert f"{MAX_CAUSE:,} bytes" in TARGETS_TEXT


def test_it_names_every_end_every_state_and_every_error():
    for named in (*When, *TargetState):
        assert f"`{named.value}`" in TARGETS_TEXT
    for error in ERRORS.values():
        assert f"`{error}`" in TARGETS_TEXT


PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "production.md").read_text()
RATES = (278, 2_778, 27_778)
"""A million, ten and a hundred million items in an hour, a second."""


def test_the_quotas_are_those_that_the_plan_computes():
    # Given what the default way takes at each rate
    assert all(f"{rate:,}" in PAGE for rate in RATES)
    taken = [needs(costs(1_000_000, rate=rate)[1], 1_000_000, rate=rate) for rate in RATES]
    # Then the table has it, and the quota of an account
    rows = {
        name: [int(one.replace(",", "")) for one in numbers.split(" | ")]
        for name, numbers in re.findall(r"^\| ([\w ]+: [^|]+) \| ([\d, |]+) \|$", PAGE, re.MULTILINE)
    }
    for quota in taken[0]:
        assert rows.pop(f"{quota.service}: {quota.name}") == [quota.default, *(one[quota] for one in taken)]
    # And what no rate decides, but a setting
    most = Settings().pipeline_max_vcpu
    assert rows == {"EMR Serverless: Max concurrent vCPUs per account": [16, most, most, most]}


TESTING_PAGE = pages.text("how-to/testing.md")
EVERYWHERE = (
    "test_a_catalog_is_imported",
    "test_cars_that_do_not_answer_are_named",
    "test_an_order_reaches_a_desk",
)
CODE = "\n\n".join(pages.code("how-to/testing.md"))


def test_its_tests_pass(tmp_path):
    # Given the page's blocks as one module of tests
    (tmp_path / "test_page.py").write_text(CODE)
    count = len(re.findall(r"^def test_", CODE, re.MULTILINE))
    assert count > 10
    # When pytest runs them, as a reader would, Then all pass
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
        "test_page.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert f"{count} passed" in done.stdout, done.stdout


def test_it_names_everything_that_a_service_has():
    service = InMemoryService()
    public = {name for name in dir(service) if not name.startswith("_")}
    table = TESTING_PAGE.split("## Reference")[1].split("\n\nIt differs")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)", row.partition(" | ")[0])}
    assert named - {"InMemoryService"} == public


def test_it_names_what_is_accessed():
    # Given the places in the page's table
    told = set(re.findall(r"^\| `(\w+)\.", TESTING_PAGE, re.MULTILINE))
    seen: set[str] = set()
    # When those that set no fault run
    scope: dict[str, object] = {}
    exec(compile(CODE, "docs/how-to/testing.md", "exec"), scope)
    for name in EVERYWHERE:
        service = InMemoryService(on_call=lambda access, _moment: seen.add(access.partition(".")[0]))
        scope[name](service)
    # Then the page names each
    assert seen == told


PAGES = [
    "deadlines",
    "early",
    "failures",
    "growing",
    "hold",
    "migrating",
    "nesting",
    "patterns/directory",
    "patterns/frames",
    "redrive",
    "results",
    "stages",
    "totals",
]


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_run(name):
    page = f"how-to/{name}.md"
    examples = pages.code(page)
    assert examples
    scope: dict[str, object] = {}
    for example in examples:
        exec(compile(example, f"docs/{page}", "exec"), scope)
