"""What each test costs in CPU seconds, its child processes' included.

A plugin of pytest, ``-p tests.cpu --figures FILE``: each worker measures its tests, and one file gets the
outcome and the cost of all. ``python -m tests`` uses it for every stage, and ``python -m tests.cpu``, that is
``make slow``, prints the dearest tests of the last run. The first test of a worker that takes a fixture of
the session pays for it.
"""

import json
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import pytest

PROPERTY: Final = "cpu"
FOLDER: Final = Path(__file__).parents[1] / ".fanin" / "tests"
STARTED: Final = pytest.StashKey[float]()


@dataclass
class Figures:
    """What became of the tests of a stage.

    Attributes:
        outcomes: test → ``passed``, ``failed`` or ``skipped``.
        cpu: test → CPU seconds.
        seconds: that the stage took by the clock.
    """

    outcomes: dict[str, str] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    seconds: float = 0

    def __or__(self, other: Self) -> Self:
        """Those of two processes that ran side by side."""
        longer = max(self.seconds, other.seconds)
        return type(self)(self.outcomes | other.outcomes, self.cpu | other.cpu, longer)

    def named(self, outcome: str) -> list[str]:
        """The tests that ended so."""
        return [test for test, ended in self.outcomes.items() if ended == outcome]

    def count(self, outcome: str) -> int:
        """Number of tests that ended so."""
        return len(self.named(outcome))

    def __str__(self) -> str:
        passed, failed, skipped = (self.count(outcome) for outcome in ("passed", "failed", "skipped"))
        return f"{passed:7} {failed:7} {skipped:8} {self.seconds:8.0f} {sum(self.cpu.values()):7.0f}"


def read(file: Path) -> Figures | None:
    """The figures of a stage; None if it did not get to its end."""
    return Figures(**json.loads(file.read_text())) if file.exists() else None


def spent() -> float:
    """CPU seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Collector:
    """Collects what the workers report, and writes it at the end."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._began = time.monotonic()
        self._figures = Figures()
        self._ended = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed" or report.when == "call":
            self._figures.outcomes[report.nodeid] = report.outcome
        if report.when == "teardown":
            self._ended += 1
            seconds = float(str(dict(report.user_properties)[PROPERTY]))
            self._figures.cpu[report.nodeid] = round(seconds, 4)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._figures.outcomes[report.nodeid] = "failed"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._ended < session.testscollected:  # several may have one id, as what is generated has
            return  # a test may have ended pytest, with any exit code
        self._figures.seconds = time.monotonic() - self._began
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(asdict(self._figures)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", help="file for the outcome and the CPU seconds of each test")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.figures and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collector(Path(config.option.figures)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[STARTED] = spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((PROPERTY, spent() - item.stash[STARTED]))
    return report


def slowest(most: int) -> Iterator[str]:
    """The dearest tests of the last run of each stage, and what share of all they cost."""
    costs = {
        name: cost
        for file in FOLDER.glob("*.json")
        if (found := read(file))
        for name, cost in found.cpu.items()
    }
    total, so_far = sum(costs.values()), 0.0
    for name, cost in sorted(costs.items(), key=lambda it: -it[1])[:most]:
        so_far += cost
        yield f"{cost:7.2f} s {so_far / total:6.1%}  {name}"
    yield f"{total:7.0f} s         in all, {len(costs):,} tests"


if __name__ == "__main__":
    print("\n".join(slowest(int(sys.argv[1]) if len(sys.argv) > 1 else 50)))
