"""Runs the tests in stages: ``python -m tests [STAGE ...]``, all if none is named. ``make test`` does.

Two stages run at a time, since those with servers and browsers wait half of the time. Every stage runs, also
after one has failed. A table and one sum come last.
"""

import argparse
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cpu import Figures, read

ROOT: Final = Path(__file__).parents[1]


@dataclass(frozen=True)
class Stage:
    """Tests that run in one call of pytest.

    Attributes:
        name: as people call it.
        paths: of the tests.
        options: more options of pytest.
        workers: processes that run them.
    """

    name: str
    paths: tuple[str, ...]
    options: tuple[str, ...] = ()
    workers: int = 2


CORES: Final = max(2, min(4, os.cpu_count() or 2))
CONTRACTS: Final = ("behaviour", "stateful", "integration", "oracle", "npm", "infra", "docs", "mutants")
STAGES: Final = (
    # Of a pair one waits and one computes. A second worker of Spark would warm up a Java of its own.
    Stage("e2e", ("tests/e2e",), workers=3),
    Stage("spark", ("tests/spark",), ("-p", "no:schemathesis"), workers=1),
    # schemathesis is a plugin that takes each process a second to import.
    Stage("unit", ("tests/unit",), ("-p", "no:schemathesis"), workers=CORES),
    Stage("contracts", tuple(f"tests/{folder}" for folder in CONTRACTS), workers=CORES),
    Stage("browser", ("tests/browser",), ("--no-loadscope-reorder",)),  # its conftest has the order
)


def run(stage: Stage) -> Figures | None:
    """Run a stage; its figures, or None if pytest could not even collect it."""
    file = ROOT / ".fanin" / "tests" / f"{stage.name}.json"
    file.unlink(missing_ok=True)
    measured = ("-p", "tests.cpu", "--figures", str(file))
    spread = ("--dist", "loadfile", "--numprocesses", str(stage.workers))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "not soak",
        *measured,
        *spread,
        *stage.options,
        *stage.paths,
    ]
    print(f"== {stage.name}: {' '.join(stage.paths)}\n", end="", flush=True)
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **both) as running:
        for line in running.stdout or ():
            print(f"{stage.name:9} {line}", end="", flush=True)
    figures = read(file)
    return figures if figures and running.returncode == (figures.count("failed") > 0) else None


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
    sys.exit(main())
