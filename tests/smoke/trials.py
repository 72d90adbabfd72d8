"""What is tried on a deployed stack; each trial says whether it passed."""

import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from rich.console import Console

from examples.catalog import demo
from examples.catalog.rows import Catalog
from examples.catalog.site import Site, functions, reader
from fanin import Tracker, names
from fanin.client.https.transport import HttpsRequest, SigV4, Urllib3Transport
from fanin.local import CHECKOUT
from fanin.local.steps import Steps
from fanin.types import State
from tests.smoke.account import Deployed

SMOKE: Final = "FANIN_SMOKE"
"""Variable with the file that describes the stack for the behaviour suite."""
BEHAVIOUR: Final = "tests/e2e/test_behaviour.py"
LONGEST_DEATH: Final = 120
"""Seconds in which a dead letter must be found."""
UNLIMITED: Final = -1
LONGEST: Final = 5_400
"""Seconds that the audit of the pipeline may take: two exports, and a job on EMR Serverless."""


def behaviour(deployed: Deployed, folder: Path, only: str) -> bool:
    """The behaviour suite, over the API and directly on the tables."""
    file = folder / "deployed.json"
    deployed.write(file)
    command = [
        sys.executable,
        "-m",
        "pytest",
        BEHAVIOUR,
        "--rootdir",
        CHECKOUT,
        *(["-k", only] if only else []),
    ]
    return _passes(command, {SMOKE: str(file)})


def catalog(deployed: Deployed, items: int, console: Console) -> bool:
    """The demo: a catalog is fanned out, its failures are redriven, and all counts agree."""
    place = Site(
        deployed,
        deployed.outputs,
        functions(deployed, deployed.name),
        reader(deployed, deployed.ack_queue_url),
    )
    tracker = Tracker.from_env()
    return demo.run(
        place, Catalog.load(items), tracker, console, metering=nullcontext(), step=Steps(sys.stdout)
    )


def dead_letters(deployed: Deployed) -> bool:
    """A message in the dead-letter queue of another stack fails its item: that queue's policy is enough."""
    sqs, tracker = deployed.client("sqs"), Tracker.from_env()
    rows = sqs.get_queue_attributes(
        QueueUrl=deployed.outputs["RowsQueueUrl"], AttributeNames=["RedrivePolicy"]
    )["Attributes"]
    name = json.loads(rows["RedrivePolicy"])["deadLetterTargetArn"].rpartition(":")[2]
    with tracker.batch(user_key="dead letters") as batch:
        batch.send(sqs.get_queue_url(QueueName=name)["QueueUrl"], ["nobody could handle it"])
    until = time.monotonic() + LONGEST_DEATH
    while (status := tracker.status(batch.id)).batch.state != "complete" and time.monotonic() < until:
        time.sleep(1)
    return status.batch.failed == 1


def paths(deployed: Deployed) -> bool:
    """No path but that of a route closes a batch, however API Gateway reads what it was sent."""
    tracker = Tracker.from_env()
    batch_id = tracker.open().batch_id
    sign, send = SigV4(deployed.session(), deployed.region), Urllib3Transport()
    for end in ("%3F/items", "%3f/items", "%253F/items", "/", "//", "%2F", "%0A", ";/items"):
        request = HttpsRequest("POST", f"{deployed.api_url}/v1/batches/{batch_id}/close{end}", {}, b"")
        send(request._replace(headers=sign(request)))
        if tracker.status(batch_id).batch.state is not State.OPEN:
            sys.stdout.write(f"close{end} was taken for close\n")
            return False
    return True


def limits(deployed: Deployed) -> set[int]:
    """The most writes a second of the tables and their indexes."""
    client = deployed.client("dynamodb")
    tables = [
        client.describe_table(TableName=name)["Table"]
        for variable, name in deployed.environment().items()
        if variable.endswith("_TABLE")
    ]
    limited = [*tables, *(index for table in tables for index in table.get("GlobalSecondaryIndexes", ()))]
    return {one.get("OnDemandThroughput", {}).get("MaxWriteRequestUnits", UNLIMITED) for one in limited}


def scan(deployed: Deployed, folder: Path) -> bool:
    """The audit of everything that the trials before have left, by a scan from this machine."""
    command = [
        sys.executable,
        "-m",
        "fanin.spark.jobs.audit",
        "--scan",
        "--confirm",
        "--output",
        folder / "audit",
    ]
    return _passes(command, deployed.environment())


def pipeline(deployed: Deployed, *, poll: float = 15) -> bool:
    """The audit as the pipeline runs it: exports of both tables, and a job on EMR Serverless."""
    client = deployed.client("stepfunctions")
    machine = deployed.outputs[names.PIPELINE_OUTPUT_AUDIT]
    execution = client.start_execution(stateMachineArn=machine, input=json.dumps({}))["executionArn"]
    until = time.monotonic() + LONGEST
    while (status := client.describe_execution(executionArn=execution)["status"]) == "RUNNING":
        if time.monotonic() > until:
            client.stop_execution(executionArn=execution, cause=f"not done in {LONGEST} s")
            return False
        time.sleep(poll)
    return bool(status == "SUCCEEDED")


def _passes(command: list[str | Path], variables: dict[str, str]) -> bool:
    done = subprocess.run(
        command, cwd=CHECKOUT, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, check=False
    )
    return done.returncode == 0
