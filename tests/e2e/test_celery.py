"""Celery with processes of its own: each child talks to fanin over connections that it has made itself."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fanin import Tracker
from fanin.local import CHECKOUT, Stack, environment
from tests.e2e.deployment import eventually

pytestmark = pytest.mark.soak

TASKS = """
import os, signal, sys
from pathlib import Path

from celery import Celery

from fanin import Tracker
from fanin.contrib.celery import TrackedTask

HERE = Path(__file__).parent
shared = Tracker.from_env()
shared.list("open")  # makes a connection before the fork
app = Celery("shop", broker="filesystem://")
app.conf.update(
    broker_transport_options={
        "data_folder_in": HERE / "queue",
        "data_folder_out": HERE / "queue",
        "control_folder": HERE / "control",
        "polling_interval": 0.1,
    },
    worker_prefetch_multiplier=1,
)


class Kept(TrackedTask):
    tracker = shared
    results = True


@app.task(base=Kept)
def import_row(row):
    killed = HERE / f"killed-{row}"
    if row % 10 == 7 and not killed.exists():
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if row == 13:
        raise LookupError("no such row")
    return {"row": row, "by": os.getpid()}
"""
SEND = """
import sys
from tasks import import_row
for n, item in enumerate(sys.argv[1:]):
    import_row.apply_async((n,), task_id=item)
"""


@pytest.fixture
def worker(stack: Stack, tmp_path: Path) -> Iterator[Path]:
    """A folder with tasks, and a worker with two child processes that runs them."""
    for name in ("queue", "control"):
        (tmp_path / name).mkdir()
    (tmp_path / "tasks.py").write_text(TASKS)
    python = os.pathsep.join([str(CHECKOUT / "layers" / "fanin" / "python"), *filter(None, sys.path)])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**environment(stack), "PYTHONPATH": python}.items():
            patch.setenv(name, value)
        command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool", "prefork", "-c", "2"]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "INFO"]
        with (
            (tmp_path / "log").open("w") as log,
            subprocess.Popen([*command, *quiet], cwd=tmp_path, stdout=log, stderr=log) as process,
        ):
            try:
                yield tmp_path
            finally:
                process.terminate()


def test_each_child_of_a_forking_worker_marks_its_items_and_a_killed_one_loses_none(worker):
    # Given a batch of tasks, three of which kill their process at the first try, and one of which fails
    tracker = Tracker.from_env()
    with tracker.batch(results=True) as batch:
        items = list(batch.add(30))
    # When a worker with two processes runs them
    subprocess.run([sys.executable, "-c", SEND, *items], cwd=worker, check=True)

    def ended() -> object:
        row = tracker.status(batch.id).batch
        return row if row.state.terminal else None

    row = eventually(ended, within=120)
    # Then all are done, with their results, by the processes of the pool and by those that took their place
    assert (row.state, row.failed) == ("complete", 1), (worker / "log").read_text()[-3_000:]
    results = [one.result for one in tracker.iter_results(batch.id)]
    assert [one["row"] for one in results] == [n for n in range(30) if n != 13]
    assert len({one["by"] for one in results}) > 1
    assert sorted(path.name for path in worker.glob("killed-*")) == ["killed-17", "killed-27", "killed-7"]
    (failed,) = tracker.iter_failures(batch.id)
    assert (failed.reason, failed.kept) == ("LookupError: no such row", True)
