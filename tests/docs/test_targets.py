"""docs/how-to/targets.md against the code."""

import ast
import re
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

from fanin.adapters.callbacks import ERRORS, MAX_CAUSE
from fanin.domain.batch import State
from fanin.domain.targets import FIELD, MAX_CALLBACK_ID, MAX_TASK_TOKEN, TargetState, TargetType, When
from fanin.testing import InMemoryService

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "how-to" / "targets.md").read_text()
EXAMPLE, DURABLE = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_its_example_runs() -> None:
    exec(compile(EXAMPLE, "docs/how-to/targets.md", "exec"), {})  # noqa: S102


def test_its_durable_function_is_the_one_that_the_emulator_runs() -> None:
    deployed = ROOT / "tests" / "e2e" / "functions" / "durable" / "handler.py"
    assert deployed.read_text().partition('"""\n\n')[2] == DURABLE


def test_a_step_of_its_durable_function_that_is_repeated_sends_nothing_twice() -> None:
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
    exec(compile(ast.Module([step], []), "docs/how-to/targets.md", "exec"), named)  # noqa: S102
    # When it ran, and died before the checkpoint, so that it runs again
    for _ in range(2):
        named["fan_out"](["one", {"order": 2}], "bm90IGEgY2FsbGJhY2s=")  # type: ignore[operator]
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


def test_it_has_every_type_with_its_field_and_its_limit() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)`", TEXT, re.MULTILINE))
    assert rows == {kind.value: FIELD[kind] for kind in TargetType}
    assert f"`task_token`, up to {MAX_TASK_TOKEN:,} characters" in TEXT
    assert f"`callback_id`, up to {MAX_CALLBACK_ID:,} characters" in TEXT
    assert f"{MAX_CAUSE:,} bytes" in TEXT


def test_it_names_every_end_every_state_and_every_error() -> None:
    for named in (*When, *TargetState):
        assert f"`{named.value}`" in TEXT
    for error in ERRORS.values():
        assert f"`{error}`" in TEXT
