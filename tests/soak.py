"""All that takes long: ``python -m tests.soak``, which is ``make soak``; hours.

The simulation of a million seeds, the model's deep runs, the mutants, the tests that are marked ``soak``, and
the wheels as a user gets them. Every part runs, also after one has failed.

With ``--minutes 1`` a sample of it, another one for each commit: seeds for half of the time, and beside them
tests of some files, which begin in that time. A test that takes long by itself,
``@pytest.mark.soak(long=True)``, is in no sample. This file is also the plugin of pytest that takes the
sample.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
SAMPLED: Final = 8
"""Files, or folders, of whose tests a sample begins as many as its time allows: to read all takes as long."""


def commit() -> int:
    """A number that is another for each commit."""
    command = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return int(done.stdout[:6] or "0", 16)


def parts(minutes: float | None) -> Iterator[tuple[str, ...]]:
    """The commands, as words after ``python``."""
    tests = ("-m", "pytest", "-m", "soak")
    if minutes is not None:
        half, some = minutes / 2, random.Random(commit()).sample(places(), SAMPLED)
        yield ("-m", "tests.stateful.soak", "--minutes", str(half), "--first", str(commit()))
        yield (*tests, *some, "-p", "tests.soak", "--sample-seconds", str(60 * half))
        return
    yield ("-m", "tests.stateful.soak")
    yield ("-m", "tests.model", "--deep")
    yield ("-m", "tests.mutants")
    yield (*tests, *places())
    yield (".ci/dist.py",)


def places() -> list[str]:
    """Files with tests that are marked, or folders: of all others pytest would drop each test it has read."""
    files = [*Path("tests").rglob("test_*.py"), *Path("tests").rglob("conftest.py")]
    marked = [file for file in files if "mark.soak" in file.read_text()]
    return sorted(str(file.parent if file.name == "conftest.py" else file) for file in marked)


def main() -> int:
    """Run everything, or a sample; the exit code is 1 if a part has failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=lambda text: float(text) if text else None, default=None)
    minutes = parser.parse_args().minutes
    with ThreadPoolExecutor(1 if minutes is None else 2) as pool:
        failed = [words for words in pool.map(_failed, parts(minutes)) if words]
    print("\n".join(f"failed: {words}" for words in failed) or "all of it passed")
    return bool(failed)


def _failed(words: tuple[str, ...]) -> str | None:
    """Run a part; the words of its command if it has failed."""
    told = " ".join(words)
    print(f"== {told}\n", end="", flush=True)
    return told if subprocess.run([sys.executable, *words], cwd=ROOT, check=False).returncode else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample-seconds", type=float, help="begin no test so many seconds after the start")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marks = {item: item.get_closest_marker("soak") for item in items}
    items[:] = [item for item in items if (mark := marks[item]) and not mark.kwargs.get("long")]
    random.Random(commit()).shuffle(items)
    config.stash[ENDS] = BEGAN + config.option.sample_seconds


def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() > item.config.stash[ENDS]:
        pytest.skip("the time of the sample is over")


BEGAN: Final = time.monotonic()
ENDS: Final = pytest.StashKey[float]()

if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
