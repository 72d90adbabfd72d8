"""The whole demo on an emulator of its own: once to its end, as `make demo` does, and once interrupted."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.crawler.demo import crawl
from examples.crawler.site import reachable
from fanin.local import status
from tests.e2e.deployment import eventually

ROOT = Path(__file__).parents[2]


@pytest.fixture
def demo(tmp_path):
    """Starts the demo, and stops it at the end of the test."""
    command = [sys.executable, "-m", "examples", "catalog", "--items", "120", "--root", str(tmp_path)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()  # it stops its emulator, which is in a process group of its own
            process.wait(30)


@pytest.mark.soak
def test_it_adds_up(demo, tmp_path):
    # When the demo runs to its end
    said, _ = demo.communicate(timeout=600)
    # Then all its own checks held
    assert demo.returncode == 0, said
    assert "Batch Completed, as the subscriber received it" in said
    assert said.count("✓") == 15
    assert "✗" not in said
    # And nothing is left running
    assert status(tmp_path).state == "down"


def test_ctrl_c_cleans_up(demo, tmp_path):
    # Given a demo whose emulator is up, and that goes on to synthesize and deploy
    eventually(lambda: status(tmp_path).state == "starting")
    # When it is interrupted
    demo.send_signal(signal.SIGINT)
    said, _ = demo.communicate(timeout=120)
    # Then it says so, and nothing is left running
    assert demo.returncode == 130, said
    assert "interrupted" in said
    assert status(tmp_path).state == "down"


@pytest.mark.usefixtures("local_environment")
@pytest.mark.parametrize("pages", [60, pytest.param(10_000, marks=pytest.mark.soak(long=True))])
def test_exactly_the_pages_that_can_be_reached_are_done_and_the_end_is_told_once(stack, tmp_path, pages):
    crawled = crawl(stack, tmp_path, pages, print)

    wanted = reachable(pages)
    assert len(wanted) < pages
    assert crawled.visited == wanted
    batch = crawled.batch
    assert (batch.state, batch.items, batch.keyed, batch.failed) == ("complete", *[len(wanted)] * 2, 0)
    assert len(crawled.events) == 1
