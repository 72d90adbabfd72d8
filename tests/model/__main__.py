"""Check the model of settling with spin: ``python -m tests.model [--deep]``.

Each run explores every interleaving of its processes. The rules must hold in all of them; and with one rule
left out, the run that is about this rule must find the fault, or it proves nothing.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODEL: Final = Path(__file__).with_name("settling.pml")
MEMORY: Final = 12_000
"""Megabytes that one run may take; only the deep ones come near."""


@dataclass(frozen=True, slots=True)
class Run:
    """One exploration of the model.

    Attributes:
        name: what is asked.
        macros: who takes part, and what may happen; see ``settling.pml``.
        broken: rules to leave out, each of which must lead to a fault.
        fair: whether it asks for what happens at last, with every process getting its turn.
    """

    name: str
    macros: str
    broken: tuple[str, ...] = ()
    fair: bool = False


RUNS: Final = (
    Run(
        "at once: nobody dies, and the last acker or the closer completes the batch",
        "AT_ONCE ACKERS=2 ITEMS=3 ADDED=2",
        broken=("SECOND_LOOK", "EDGE"),
    ),
    Run(
        "never early: an acker, the closer and the reaper may die at any step, and answers are lost",
        "MORTAL ACKERS=1 ITEMS=3 REAPER",
        broken=("OPEN_SIZE", "CHILD_FIRST", "CLEAR_CONDITION"),
    ),
    Run(
        "once: the batch is also cancelled, times out, is orphaned, and each end is announced",
        "MORTAL ACKERS=1 ITEMS=1 REAPER IDLE ENDER NOTIFIER",
        broken=("END_CONDITION",),
    ),
    Run(
        "never lost: two die on the way; when all is quiet, one look by the reaper completes the batch",
        "DEATHS=2 ACKERS=1 ITEMS=3 ADDED=3 HEALER AT_REST",
        broken=("HEALER", "REAPER"),
    ),
    Run(
        "at last: the batch completes if every process gets its turn",
        "DEATHS=1 ACKERS=1 ITEMS=2 ADDED=2 REAPER HEALER EVENTUALLY",
        fair=True,
    ),
)
DEEP: Final = (
    Run("at once, with one item more", "AT_ONCE ACKERS=2 ITEMS=4"),
    Run("at once, with three ackers", "AT_ONCE ACKERS=3 ITEMS=2 ADDED=2"),
    Run("never early, with two ackers, of which one dies", "DEATHS=1 ACKERS=2 ITEMS=2"),
    Run("never early, with wider words", "MORTAL ACKERS=1 ITEMS=4 WIDTH=3 REAPER"),
    Run("never lost, however many die", "MORTAL ACKERS=1 ITEMS=3 ADDED=3 HEALER AT_REST"),
    Run("at last, with two levels", "DEATHS=2 ACKERS=1 ITEMS=3 REAPER HEALER EVENTUALLY", fair=True),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a run has found.

    Attributes:
        states: how many it has visited.
        fault: the rule that does not hold, as spin says it; empty if all hold.
    """

    states: int
    fault: str


class Failed(Exception):
    """Spin, the compiler or the checker did not come to an end."""


def explore(run: Run, broken: str = "") -> Found:
    """Compile the model for a run, and visit all its states.

    Raises:
        Failed: it could not be compiled, or needs more memory than it may take.
    """
    macros = [f"-D{macro}" for macro in [*run.macros.split(), *([f"BREAK_{broken}"] if broken else [])]]
    compiled = ["-DCOLLAPSE", f"-DMEMLIM={MEMORY}", *(["-DNFAIR=2"] if run.fair else ["-DSAFETY"])]
    searched = ["-m1000000", *(["-a", "-f"] if run.fair else [])]
    with tempfile.TemporaryDirectory() as folder:
        for command in (
            ["spin", "-a", *macros, str(MODEL)],
            ["cc", "-O2", "-w", *compiled, "-o", "pan", "pan.c"],
            ["./pan", *searched],
        ):
            answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if answer.returncode:
                raise Failed(f"{' '.join(command)} failed: {(answer.stderr or answer.stdout)[-500:]}")
    output = answer.stdout
    states = re.search(r"^\s*(\d+) states, stored", output, re.MULTILINE)
    errors = re.search(r"errors: (\d+)", output)
    if not states or not errors or ("Search not completed" in output and errors[1] == "0"):
        raise Failed(f"the checker did not visit all states: {output[-500:]}")
    fault = re.search(r"^pan:1: (.+?)(?: \(at depth \d+\))?$", output, re.MULTILINE)
    return Found(int(states[1]), fault[1] if fault else "")


def check(run: Run) -> list[str]:
    """Explore a run, and the same without each rule that it is about.

    Returns:
        What is wrong.
    """
    print(run.name, flush=True)
    try:
        found = explore(run)
    except Failed as failed:
        print(f"  {failed}", flush=True)
        return [f"{run.name}: not answered"]
    print(f"  {found.states:>10,} states: {found.fault or 'holds'}", flush=True)
    wrong = [f"{run.name}: {found.fault}"] if found.fault else []
    for rule in run.broken:
        found = explore(run, rule)
        print(f"  {found.states:>10,} states without {rule}: {found.fault or 'not noticed'}", flush=True)
        if not found.fault:
            wrong.append(f"{run.name}: nobody notices that {rule} is left out")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Make all runs, and print what they found."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--deep", action="store_true", help="also the runs that take many minutes")
    options = parser.parse_args(arguments)
    for tool, package in (("spin", "spin"), ("cc", "gcc")):
        if not shutil.which(tool):
            sys.exit(
                f"{tool} is needed to check the model; on Debian and Ubuntu run: apt-get install {package}"
            )
    wrong = [line for run in (*RUNS, *(DEEP if options.deep else ())) for line in check(run)]
    print("\n".join(wrong) or "the model holds, and every fault was found")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
