"""A command that asks the API loads nothing that it does not need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fanin.wire.batches import PROGRESS

UNNEEDED = ("pydantic", "rich", "boto3", "s3transfer", "botocore.session", "botocore.client", "uvicorn")
UNNEEDED += ("starlette", "fanin.app.services", "fanin.client.consuming.handler", "fanin.cli.batches")


@pytest.fixture
def api(tracker):
    """The URL of an API that answers every request with the progress of a batch."""
    answer = json.dumps(PROGRESS.encode(tracker.status(tracker.open().batch_id))).encode()

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_status_loads_only_what_it_needs(api):
    code = f"""
import sys
from fanin.cli import run
sys.argv = ["fanin", "--api-url", {api!r}, "status", "1"]
try:
    run()
except SystemExit as end:
    assert not end.code, end.code
print([name for name in {UNNEEDED!r} if name in sys.modules])
"""
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "eu-west-1"}
    said = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], env={**os.environ, **keys}, capture_output=True, text=True, check=False
    )
    assert said.stdout.splitlines()[-1:] == ["[]"], said.stdout + said.stderr


def test_whoever_stops_reading_hears_nothing_of_it():
    code = "import sys; from fanin.cli import run; sys.argv = ['fanin', 'plan', '1000']; run()"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, "Traceback" in done.stderr, "roken" in done.stderr) == (141, False, False)
