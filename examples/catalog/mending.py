"""The second act: failed rows are looked at, the consumer is fixed, and their messages are sent again."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from examples.catalog.site import Site
from fanin import Tracker
from fanin.local import Steps
from fanin.types import ErrorGroup, Progress, Redriving, State

PATIENCE = 300  # seconds that a batch or an execution may take
SHOWN = 5  # errors that are printed


@dataclass(frozen=True)
class Mended:
    """What became of the failed rows.

    Attributes:
        errors: the failures of the first batch, by error.
        redriven: the redrive of all of them.
        again: a second redrive of the same batch.
        retry: the second batch, at its end.
        execution: status of the execution that waited for the first batch, and its output.
    """

    errors: tuple[ErrorGroup, ...]
    redriven: Redriving
    again: Redriving
    retry: Progress
    execution: tuple[str, dict[str, Any]]

    def checks(self, first: int, failed: int, totals: Mapping[str, int]) -> Iterator[tuple[str, bool]]:
        """Each promise, and whether it holds.

        Args:
            first: the first batch.
            failed: how many of its items failed.
            totals: of all rows of the catalog.
        """
        kept = sum(group.kept for group in self.errors)
        batch = self.retry.batch
        yield (
            f"the {failed} failures have {len(self.errors)} errors, and their messages were kept",
            sum(group.failed for group in self.errors) == kept == failed,
        )
        yield (
            f"the redrive sent {failed} messages, and a second one sent none",
            (self.redriven.items, self.again.items) == (failed, 0) and self.redriven.batch_id is not None,
        )
        yield (
            "the second batch retries the first, and is complete without failures",
            (batch.state, batch.items, batch.failed, batch.retry_of) == (State.COMPLETE, failed, 0, first),
        )
        sums = {name: batch.totals[name] + batch.totals_before[name] for name in batch.totals}
        yield (
            f"both batches together have summed up all {totals['bytes']:,} bytes of the catalog",
            sums == totals and batch.totals_exact,
        )
        status, output = self.execution
        yield (
            "the execution that waited for the first batch went on with its counts",
            (status, output.get("batch_id"), output.get("failed")) == ("SUCCEEDED", first, failed),
        )


def mend(place: Site, tracker: Tracker, batch_id: int, execution: str, step: Steps) -> Mended:
    """Look at the failures, fix the consumer, and redrive.

    Raises:
        TimeoutError: the second batch or the execution has not ended in time.
    """
    errors = tracker.errors(batch_id)
    step("fixing the consumer: from now on it leaves out what is malformed")
    _configure(place, LENIENT="yes")
    step(f"fanin redrive {batch_id}, and waiting for the end of the new batch")
    redriven = tracker.redrive(batch_id)
    again = tracker.redrive(batch_id)
    retry = tracker.wait(redriven.batch_id or batch_id, timeout=PATIENCE)
    return Mended(errors, redriven, again, retry, _ended(place, execution))


def wake(place: Site, user_key: str) -> str:
    """Start the execution that opens the batch and waits for its end; returns its ARN."""
    started = place.stack.client("stepfunctions").start_execution(
        stateMachineArn=place.outputs["StateMachineArn"], input=json.dumps({"user_key": user_key})
    )
    return str(started["executionArn"])


def opened(tracker: Tracker, user_key: str) -> int:
    """The batch that the execution has opened.

    Raises:
        TimeoutError: there is none in time.
    """
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for batch in tracker.list(user_key=user_key).batches:
            return batch.batch_id
        time.sleep(0.2)
    raise TimeoutError(f"no batch with the user key {user_key} was opened in {PATIENCE} s")


def _ended(place: Site, execution: str) -> tuple[str, dict[str, Any]]:
    client = place.stack.client("stepfunctions")
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = client.describe_execution(executionArn=execution)
        if found["status"] != "RUNNING":
            return found["status"], json.loads(found.get("output", "{}"))
        time.sleep(0.2)
    raise TimeoutError(f"execution {execution} has not ended in {PATIENCE} s")


def _configure(place: Site, **variables: str) -> None:
    """Change environment variables of the consumer."""
    lambdas, name = place.stack.client("lambda"), place.outputs["ConsumerName"]
    known = lambdas.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": known | variables})


def table(errors: tuple[ErrorGroup, ...]) -> Table:
    """What `fanin failures --by-error` shows."""
    shown = Table.grid(padding=(0, 2))
    shown.add_column(justify="right")
    for group in errors[:SHOWN]:
        shown.add_row(f"[bold]{group.failed}", escape(group.error), f"[dim]such as: {escape(group.example)}")
    return shown
