"""A client that is generated from the OpenAPI document has types that hold, and works."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from tests.gateway import Gateway
from tests.openapi.tools import generator, written

pytestmark = pytest.mark.soak

USE = """
import json
import sys

from fanin_client import AuthenticatedClient
from fanin_client.api.batches import add_items, close_batch, get_batch, open_batch
from fanin_client.api.items import list_missing, mark_items
from fanin_client.models import (
    AddItems, Batch, Failure, Group, Marked, MarkItems, Missing, OpenBatch, Problem, Progress,
)

client = AuthenticatedClient(base_url=sys.argv[1], token="of no account here")
batch = open_batch.sync(client=client, body=OpenBatch(user_key="catalog-42"), idempotency_key="run-7")
assert isinstance(batch, Batch), batch
group = add_items.sync(batch.batch_id, client=client, body=AddItems(count=3))
assert isinstance(group, Group), group
items = [f"{group.batch_id}:{group.id}:{n}" for n in range(group.upto)]
marked = mark_items.sync(client=client, body=MarkItems(marks=[*items[:1]]))
assert isinstance(marked, Marked), marked
missing = list_missing.sync(batch.batch_id, client=client)
assert isinstance(missing, Missing), missing
close_batch.sync(batch.batch_id, client=client)
failure = Failure(failed=items[1], reason="no price")
mark_items.sync(client=client, body=MarkItems(marks=[failure, *items[2:]]))
progress = get_batch.sync(batch.batch_id, client=client)
assert isinstance(progress, Progress), progress
refused = get_batch.sync(7, client=client)
assert isinstance(refused, Problem), refused
print(json.dumps({
    "first": marked.batches[0].first,
    "missing": [[found.from_, found.to] for found in missing.ranges],
    "state": progress.state.value,
    "failed": progress.failed,
    "refused": refused.status,
}))
"""


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the generated package, and a program that uses it."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "config.json").write_text('{"post_hooks": []}')
    done = subprocess.run(
        [
            *(str(generator() / "openapi-python-client"), "generate", "--path", str(written())),
            *("--output-path", str(folder / "fanin_client"), "--meta", "none"),
            *("--config", str(folder / "config.json"), "--fail-on-warning"),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "use.py").write_text(USE)
    return folder


@pytest.fixture
def url() -> Iterator[str]:
    """Where the real handlers answer, over HTTP."""
    server = make_server("127.0.0.1", 0, Gateway(compresses=True), handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_its_types_hold(client):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file", ""),
            *("--cache-dir", str(client / "cache"), "--python-executable", str(generator() / "python")),
            *("fanin_client", "use.py"),
        ],
        cwd=client,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_opens_acknowledges_and_reads_a_batch(client, url):
    done = subprocess.run(
        [str(generator() / "python"), "use.py", url], cwd=client, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "first": 1,
        "missing": [[1, 3]],
        "state": "complete",
        "failed": 1,
        "refused": 404,
    }
