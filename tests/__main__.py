"""Runs the tests in stages: ``python -m tests [STAGE ...]``, all if none is named. ``make test`` does.

Two stages run at a time, since those with servers and browsers wait half of the time. Every stage runs, also
after one has failed. A table and one sum come last.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Final

from tests.cpu import Figures, read

ROOT: Final = Path(__file__).parents[1]


@dataclass(frozen=True)
class Stage:
    """Tests that run together.

    Attributes:
        name: as people call it.
        paths: of the tests.
        options: more options of pytest.
        shares: processes that share the paths in turns, so that each collects its own tests and no others.
    """

    name: str
    paths: Sequence[str]
    options: tuple[str, ...] = ()
    shares: int = 1


CORES: Final = max(2, min(4, os.cpu_count() or 2))
UNIT: Final = sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("tests/unit/**/test_*.py"))
# In an order in which two shares cost the same, and one of them makes all templates.
CONTRACTS: Final = ("stateful", "docs", "behaviour", "infra", "integration", "oracle", "npm", "mutants")
# schemathesis is a plugin that takes each process a second to import.
LEAN: Final = ("-p", "no:schemathesis", "-p", "no:xdist")
# Whoever is free takes the next file. If a process dies, xdist would start others until it hangs.
SPREAD: Final = ("--dist", "loadfile", "--max-worker-restart", "0", "--numprocesses")
STAGES: Final = (
    # Of a pair one waits and one computes.
    Stage("e2e", ("tests/e2e",), (*SPREAD, "3")),
    Stage("spark", ("tests/spark",), LEAN),  # a second process would warm up a Java of its own
    Stage("unit", UNIT, LEAN, shares=CORES),
    Stage("contracts", [f"tests/{folder}" for folder in CONTRACTS], ("-p", "no:xdist"), shares=CORES),
    # Its conftest has the order.
    Stage("browser", ("tests/browser",), (*SPREAD, "2", "--no-loadscope-reorder")),
)
RUNNING: Final[list[subprocess.Popen[str]]] = []


def run(stage: Stage) -> Figures | None:
    """Run a stage; its figures, or None if pytest did not get to the end of it."""
    with ThreadPoolExecutor(stage.shares) as pool:
        found = list(pool.map(partial(_run_share, stage), range(stage.shares)))
    shares = [figures for figures in found if figures]
    return reduce(or_, shares) if len(shares) == stage.shares else None


def _run_share(stage: Stage, number: int) -> Figures | None:
    name = stage.name if stage.shares == 1 else f"{stage.name}-{number + 1}"
    file = ROOT / ".fanin" / "tests" / f"{name}.json"
    file.unlink(missing_ok=True)
    measured = ("-p", "tests.cpu", "--figures", str(file))
    paths = stage.paths[number :: stage.shares]
    chosen = ("--continue-on-collection-errors", "-m", "not soak")
    command = [sys.executable, "-m", "pytest", *chosen, *measured, *stage.options, *paths]
    print(f"== {name}\n", end="", flush=True)
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **both) as running:
        RUNNING.append(running)
        for line in running.stdout or ():
            print(f"{name:11} {line}", end="", flush=True)
    figures = read(file)
    return figures if figures and running.returncode == (figures.count("failed") > 0) else None


def _interrupt(*_: object) -> None:
    """End as after Ctrl-C, for which a terminal tells pytest, too: it stops what its tests have started."""
    for running in RUNNING:
        running.send_signal(signal.SIGINT)
    sys.exit("interrupted; nothing is running")


def main() -> int:
    """Run what is asked for; the exit code is 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(stage.name for stage in STAGES))
    wanted = parser.parse_args().stages
    if unknown := set(wanted) - {stage.name for stage in STAGES}:
        parser.error(f"there is no stage {', '.join(sorted(unknown))}")
    stages = [stage for stage in STAGES if not wanted or stage.name in wanted]
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip([stage.name for stage in stages], pool.map(run, stages), strict=True))
    print(f"\n{'stage':9} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8} {'CPU s':>7}")
    for name, figures in results.items():
        print(f"{name:9} {figures or 'broke off: see above'}")
    passed, failed = (
        sum(figures.count(outcome) for figures in results.values() if figures)
        for outcome in ("passed", "failed")
    )
    failed += sum(figures is None for figures in results.values())
    for figures in filter(None, results.values()):
        print("".join(f"failed: {test}\n" for test in figures.named("failed")), end="")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{passed} passed, {failed} failed; {spent.ru_utime + spent.ru_stime:.0f} CPU s")
    return int(failed > 0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
    sys.exit(main())
