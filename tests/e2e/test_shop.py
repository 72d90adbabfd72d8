"""A stack with other settings and an own function: it keeps unrouted events, and consumes a buffer."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from fanin import names
from fanin.client.tracker import Tracker
from fanin.domain.directory import Register
from fanin.domain.routing import PutEvent, PutRoute
from fanin.local import Stack, emulator
from fanin.local.deploy import deploy, fingerprint
from fanin.local.outputs import describe
from fanin.local.stack import CHECKOUT, CONTEXT, EMULATOR_HOME, INPUTS
from fanin.local.synth import synthesize
from tests.e2e.deployment import Deployment, eventually

pytestmark = pytest.mark.emulator

APP = Path(__file__).with_name("shop") / "app.py"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, dict[str, str]]]:
    """The stack of ``shop/app.py``, with policies enforced, and its outputs."""
    folder = tmp_path_factory.mktemp("shop")
    assembly = CHECKOUT / ".fanin" / "cdk.out" / "shop"
    inputs = [*(CHECKOUT / name for name in INPUTS), APP.parent]
    synthesize(APP, assembly, inputs=inputs, context={**CONTEXT, "prefix": "shop", "unrouted": "keep"})
    running = emulator.start(folder, emulator.install(EMULATOR_HOME, print), auth=True)
    try:
        found = deploy(assembly, running.endpoint_url)
        log_file = emulator.log_file(folder)
        yield describe(running, found, log_file=log_file, fingerprint=fingerprint(assembly)), found
    finally:
        emulator.stop(folder)


@pytest.fixture(scope="module")
def shop(outputs) -> Tracker:
    stack, _ = outputs
    keys = boto3.Session(stack.access_key_id, stack.secret_access_key, region_name=stack.region)
    return Tracker.over_https(stack.api_url, session=keys)


@pytest.fixture
def sqs(outputs):
    stack, _ = outputs
    return stack.client("sqs")


def test_an_event_that_nobody_gets_is_kept(outputs, shop, sqs) -> None:
    # Given a route to a topic with one registration, and one to a topic of nobody
    stack, found = outputs
    queue = sqs.create_queue(QueueName="clerk", tags={names.CHANNEL_TAG: "clerk"})["QueueUrl"]
    topic = f"clerks-{uuid.uuid4()}"
    shop.directory.register(Register(topic, "one", queue))
    shop.routing.put(PutRoute("heard", {"source": ["till"], "detail-type": ["Sold"]}, topic))
    shop.routing.put(PutRoute("empty", {"source": ["till"], "detail-type": ["Returned"]}, "nobody"))
    deployment = Deployment(stack)
    # When an event comes for each, and one that no route wants
    for kind in ("Sold", "Returned", "Unheard"):
        shop.routing.publish(PutEvent("till", kind, {"kind": kind}))
    # Then the clerk has the first, and the queue for unrouted events has the others, unchanged
    kept: list[dict] = []

    def both() -> bool:
        kept.extend(json.loads(message["Body"]) for message in deployment.receive(found["UnroutedUrl"]))
        return len({event["id"] for event in kept}) >= 2

    eventually(both, within=60)
    assert {event["detail-type"] for event in kept} == {"Returned", "Unheard"}
    assert all((event["source"], event["detail"]["kind"]) == ("till", event["detail-type"]) for event in kept)
    (message,) = eventually(lambda: deployment.receive(queue))
    assert json.loads(message["Body"])["detail-type"] == "Sold"


def test_a_function_consumes_a_buffer_and_so_sets_the_pace(outputs, shop) -> None:
    # Given a buffer of three slots on the function's queue
    _, found = outputs
    buffer = shop.buffers.define("renders", 3, queue=found["RendersUrl"])
    producer = shop.producer("renders")
    # When more work is put than it holds, of which one cannot be done and one kills the function
    for payload in ("one", "empty", "cursed", *(f"scene {i}" for i in range(9))):
        producer.put(payload)
    # Then every slot is free again, and the two items have failed
    eventually(lambda: shop.buffers.status("renders").pending == 0, within=60)
    failures = {failure.reason for failure in shop.failures(buffer.batch_id).failures}
    assert len(failures) == 2
    assert "nothing to render" in failures
    producer.put_now("three", "more", "scenes")
    eventually(lambda: shop.buffers.status("renders").pending == 0, within=60)
