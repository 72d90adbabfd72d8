"""Jobs that spark-submit runs from the package, the stack there."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fanin import Tracker
from fanin.domain.batch import State
from fanin.spark.emr import Script
from fanin.spark.jobs import fan_out
from tests.slow_wire import slow_wire
from tests.spark.consuming import consumers, new_queue, waiting
from tests.spark.items import ITEMS, filled, written

ROWS = 80
PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "spark" / "scripts.md"


def words(arguments: dict[str, object]) -> list[str]:
    return [str(word) for pair in arguments.items() for word in pair]


def summary_of(command: list[str], outside: dict[str, str], folder: Path) -> dict[str, Any]:
    """Run a command that succeeds, and read the summary in its last line."""
    ran = subprocess.run(
        command, env=outside, cwd=folder, capture_output=True, text=True, check=False, timeout=540
    )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    summary: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return summary


@pytest.mark.soak
def test_driver_and_executors_run_a_job_from_the_zip(local_environment, outside, submitted, tmp_path):
    # Given a dataset, a queue, and the environment that names the stack
    queue_url = new_queue()
    (tmp_path / "rows.json").write_text("".join(f'{{"n": {n}}}\n' for n in range(ROWS)))
    arguments = {
        "--input": tmp_path / "rows.json",
        "--format": "json",
        "--queue": queue_url,
        "--staging": tmp_path / "staging",
    }
    # When
    summary = summary_of(
        [*submitted("local-cluster[1,2,1024]"), "fan-out", *words(arguments)], outside, tmp_path
    )
    # Then every row is a message and an item
    assert (summary["ok"], summary["rows"], summary["sent"]) == (True, ROWS, ROWS)
    batch = Tracker.from_env().status(summary["batch_id"]).batch
    assert (batch.items, batch.state) == (ROWS, State.CLOSED)


@pytest.mark.soak
def test_the_script_of_the_page_runs_beside_the_zip_with_its_files(service, outside, submitted, tmp_path):
    # Given the script of the page, the module that its tasks import, and items of which some are to fail
    for name, text in re.findall(r"```python title=\"([\w./]+)\"\n(.*?)```", PAGE.read_text(), re.DOTALL):
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text)
    batch, group = filled(service)
    rows = {"order": [f" {item} " for item in group], "cents": [-1 if n < 5 else n for n in range(ITEMS)]}
    script = Script.of(tmp_path / "own" / "orders.py", [tmp_path / "own" / "rules"])
    arguments = {"--orders": written(tmp_path / "orders", **rows), "--work": tmp_path / "work"}
    # When spark-submit runs it, as EMR does
    summary = summary_of([*submitted("local[2]", script), *words(arguments)], outside, tmp_path)
    # Then every item is done or failed, and the summary says so
    assert (summary["job"], summary["ok"], summary["failed"], summary["distinct"]) == (
        "orders",
        True,
        5,
        ITEMS - 5,
    )
    assert json.loads((tmp_path / "work" / "summary.json").read_text()) == summary
    row = service.ledger().status(batch.batch_id).batch
    assert (row.state, row.failed) == (State.COMPLETE, 5)


@pytest.mark.usefixtures("spark")
def test_a_driver_that_was_killed_in_the_middle_is_run_again(service, outside, submitted, tmp_path, capsys):
    # Given a driver, of the zip, with a task that waits for an answer to its first send, which SQS has taken
    (tmp_path / "rows").mkdir()
    for half in (range(ROWS // 2), range(ROWS // 2, ROWS)):
        pq.write_table(pa.table({"id": half}), tmp_path / "rows" / f"from-{half.start}.parquet")
    queue = new_queue()
    arguments = {"--input": tmp_path / "rows", "--queue": queue, "--staging": tmp_path / "staging"}
    command = [*words(arguments), "--user-key", "killed"]
    with slow_wire(os.environ["AWS_ENDPOINT_URL"]) as wire:
        wire.keep_next("SendMessageBatch")
        driver = subprocess.Popen(
            [*submitted("local[2]"), "fan-out", *command, "--workers", "1"],
            env={**outside, "AWS_ENDPOINT_URL_SQS": wire.url},
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        with driver:
            while not wire.kept:
                assert driver.poll() is None
                time.sleep(0.1)
            # When it is killed, with its JVM and its tasks
            os.killpg(driver.pid, signal.SIGKILL)
    before = waiting(queue)
    (batch,) = (one for one in service.tracker().iter_batches(State.OPEN) if one.user_key == "killed")
    assert (batch.items, 0 < before < ROWS) == (ROWS, True)
    # And another is run in its place, and consumers work
    with consumers(service.tracker(), queue) as handled:
        code = fan_out.JOB.main(command)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert code == 0
    # Then it went on with the same batch: every row is an item, each item is of one row, all are done
    row = service.ledger().status(told["batch_id"]).batch
    assert (told["batch_id"], told["rows"], told["sent"]) == (batch.batch_id, ROWS, ROWS)
    assert (row.state, row.items) == (State.COMPLETE, ROWS)
    assert set(handled.times) == {json.dumps({"id": n}, separators=(",", ":")) for n in range(ROWS)}
    assert {len(bodies) for bodies in handled.bodies.values()} == {1}
    assert len(handled.bodies) == ROWS
    assert sum(handled.times.values()) >= ROWS + before
