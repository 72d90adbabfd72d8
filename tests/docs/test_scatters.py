"""docs/how-to/patterns/scatter-gather.md against the code."""

import re
from typing import Any

from fanin import Tracker, names
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Patterns, Services
from fanin.client.messages import read_message
from fanin.domain.directory import Register
from fanin.errors import CorrelationIdAlive
from tests.docs import pages

TEXT = pages.text("how-to/patterns/scatter-gather.md")
QUEUE = "https://sqs/car-7"


def example() -> dict[str, Any]:
    (code,) = pages.code("how-to/patterns/scatter-gather.md")
    names_of_it: dict[str, Any] = {}
    exec(compile(code, "docs/how-to/patterns/scatter-gather.md", "exec"), names_of_it)  # noqa: S102
    return names_of_it


def test_its_example_runs_and_its_tables_are_complete() -> None:
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
        tracker,
        read_message({"messageId": "m", "body": sent.body, "messageAttributes": attributes}),
    )
    # Then the reply is there, and the page names every attribute and field
    assert code["gathered"](tracker, batch_id) == {"car-7": {"vehicle": "car-7", "km": 312}}
    assert set(re.findall(r"^\| `(fanin-[a-z-]+)` \|", TEXT, re.MULTILINE)) == set(sent.attributes)
    ledger.announce(memory.ports().batches.read([batch_id])[batch_id])
    detail = memory.events.published[-1].detail
    fields = TEXT.split("## Gather Ready")[1].split("## Bounds")[0]
    told = {
        name
        for row in re.findall(r"^\| (`.+?) \|", fields, re.MULTILINE)
        for name in re.findall("`(.+?)`", row)
    }
    assert told <= set(detail)
    assert {"correlation_id", "received", "missing_recipients", "retries"} <= told


def test_its_problem_is_the_code_s() -> None:
    assert f"`{CorrelationIdAlive.code}`" in TEXT
    assert f"`{names.ATTRIBUTE_REPLY_TO}`" in TEXT
