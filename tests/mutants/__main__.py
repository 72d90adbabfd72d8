"""Mutation tests: ``python -m tests.mutants [OPTIONS] [ROOM OR MODULE ...]``.

Each mutant runs in a process of its own, which is forked after the large libraries were imported, and gets
the changed module from memory; no file is written. Several run at a time. The tests of the module come first,
then those of its room, then those that use the room from outside. A mutant that passes them all has survived:
some behaviour has no test. A few mutants behave like the original; ``equivalents.toml`` lists them with the
reason.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.mutants.mutate import Mutant, mutants
from tests.mutants.running import PACKAGE, PASSED, ROOT, TOO_SLOW, outcomes

EQUIVALENTS: Final = Path(__file__).with_name("equivalents.toml")

ROOMS: Final = ("domain", "wire", "app", "adapters/dynamodb", "client")
"""What is mutated when nothing is named."""
LEAST: Final = {"domain": 0.9, "app": 0.9}
"""The share of mutants that the tests of a room must kill."""
SIGNATURES: Final = "tests/unit/app/test_services.py"
OUTSIDE: Final[dict[str, tuple[str, ...]]] = {
    "domain": ("tests/unit/app", "tests/unit/wire", "tests/unit/cli", "tests/behaviour/test_bill.py"),
    "app/api": (SIGNATURES,),
    "wire": (
        "tests/docs/test_reference.py",
        "tests/docs/test_reference_wire.py",
        "tests/unit/entry/http",
        "tests/unit/client",
        "tests/docs/test_openapi.py",
    ),
    "app/ledger": (SIGNATURES, "tests/stateful/test_machine.py", "tests/behaviour/test_batches.py"),
    "app/scatters": (
        SIGNATURES,
        "tests/stateful/test_scatter_machine.py",
        "tests/behaviour/test_patterns.py",
    ),
    "app/frames": (SIGNATURES, "tests/stateful/test_frame_machine.py", "tests/behaviour/test_patterns.py"),
    "app/buffers": (SIGNATURES, "tests/stateful/test_buffers.py", "tests/behaviour/test_patterns.py"),
    "app/directory": (SIGNATURES, "tests/behaviour/test_patterns.py"),
    "app/targets": ("tests/unit/entry/test_targets.py",),
    "adapters/dynamodb": ("tests/integration",),
    "client": ("tests/behaviour",),
}
"""Room → tests that use it from outside, for mutants that the room's own tests do not kill."""

SEED: Final = 20261123
"""Of samples, so that a room that has not changed always gives the same one."""


def stages(module: Path) -> list[tuple[str, ...]]:
    """The tests of a module of the package: its own, its room's, and others that use the room."""
    room, place = module.parent.as_posix(), module.with_suffix("").as_posix()
    outside = next((tests for name, tests in OUTSIDE.items() if f"{place}/".startswith(f"{name}/")), ())
    found = [(f"tests/unit/{room}/test_{module.name}",), (f"tests/unit/{room}",), outside]
    return [tests for tests in found if tests and all((ROOT / test).exists() for test in tests)]


@dataclass
class Result:
    """What became of the mutants of a module."""

    module: str
    killed: int = 0
    slow: int = 0
    survivors: list[Mutant] = field(default_factory=list)
    equivalent: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        total = self.killed + len(self.survivors)
        share = f"{self.killed / total:6.1%}" if total else "      "
        line = f"{self.module:40} {self.killed:5} of {total:5} killed {share}, {self.equivalent} equivalent"
        return f"{line}, {self.slow} killed because they took too long" if self.slow else line


def examine(module: Path, found: Sequence[Mutant], equivalents: dict[str, str], processes: int) -> Result:
    """Try mutants of a module.

    Args:
        module: relative to the package.
        found: the mutants to try.
        equivalents: names of mutants that behave like the original, with the reason.
        processes: how many mutants to try at a time.
    """
    result = Result(module.as_posix())
    for mutant, code in outcomes(module, found, stages(module), processes):
        if mutant.name in equivalents:
            result.equivalent += 1
            if code != PASSED:
                result.wrong.append(f"a test kills it, so it is not equivalent: {mutant.name}")
        elif code == PASSED:
            result.survivors.append(mutant)
            print(f"  survived: {result.module}:{mutant.line} {mutant.name}", flush=True)
        else:
            result.killed += 1
            result.slow += code == TOO_SLOW
    return result


def modules(name: str) -> list[Path]:
    """The modules of a room, relative to the package."""
    place = PACKAGE / name
    if not place.exists():
        sys.exit(f"there is no {name} in {PACKAGE}; name a room or a module, such as domain/tree.py")
    found = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return [path.relative_to(PACKAGE) for path in found]


def chosen(name: str, options: argparse.Namespace) -> Iterator[tuple[Path, list[Mutant]]]:
    """The mutants to try of a room or a module, by module.

    Args:
        name: of the room or the module.
        options: `since`, `only` and `sample` leave mutants out.
    """
    found: list[tuple[Path, Mutant]] = []
    for module in modules(name):
        path = PACKAGE / module
        lines = changed(path, options.since) if options.since else None
        found += [
            (module, mutant)
            for mutant in mutants(path.read_text(), str(path))
            if (lines is None or mutant.line in lines) and options.only in mutant.name
        ]
    if options.sample and options.sample < len(found):
        print(f"{name}: a sample of {options.sample} of its {len(found)} mutants")
        picked = sorted(random.Random(SEED).sample(range(len(found)), options.sample))
        found = [found[index] for index in picked]
    for module, of_module in groupby(found, lambda it: it[0]):
        yield module, [mutant for _, mutant in of_module]


def changed(path: Path, since: str) -> set[int]:
    """The lines of a file that have changed since a revision."""
    command = ["git", "diff", "--unified=0", since, "--", str(path)]
    diff = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: set[int] = set()
    for first, count in re.findall(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", diff, re.MULTILINE):
        found |= set(range(int(first), int(first) + int(count or 1)))
    return found


def obsolete(module: Path, equivalents: Iterable[str]) -> Result:
    """Names of equivalent mutants that no mutant of the module has any more."""
    path = PACKAGE / module
    existing = {mutant.name for mutant in mutants(path.read_text(), str(path))} if path.exists() else set()
    return Result(
        module.as_posix(),
        wrong=[f"there is no such mutant: {name}" for name in equivalents if name not in existing],
    )


def main() -> int:
    """Try all mutants that were asked for, and report on them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "wanted", nargs="*", metavar="ROOM OR MODULE", help="such as domain or domain/tree.py"
    )
    parser.add_argument("--since", metavar="REVISION", help="only lines that have changed since")
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only mutants with this text in their names"
    )
    parser.add_argument(
        "--sample", metavar="N", type=int, help="only N mutants of each room, always the same"
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=int,
        default=os.cpu_count() or 1,
        help="how many mutants run at a time",
    )
    options = parser.parse_args()
    sys.dont_write_bytecode = False  # else each process would have to compile fanin and the tests first
    os.chdir(ROOT)
    equivalents = tomllib.loads(EQUIVALENTS.read_text())
    results = [obsolete(Path(module), names) for module, names in equivalents.items()]
    for name in options.wanted or ROOMS:
        for module, found in chosen(name, options):
            result = examine(module, found, equivalents.get(module.as_posix(), {}), options.processes)
            results.append(result)
            print(result, flush=True)
    return verdict(results)


def verdict(results: Sequence[Result]) -> int:
    """Print the share of each room.

    Returns:
        The exit code: 1 if a share is too low, or if the list of equivalents is wrong.
    """
    bad = [f"{result.module}: {line}" for result in results for line in result.wrong]
    for room in ROOMS:
        of_room = [result for result in results if result.module.startswith(f"{room}/")]
        killed = sum(result.killed for result in of_room)
        total = killed + sum(len(result.survivors) for result in of_room)
        if total:
            print(f"{room}: {killed} of {total} killed, {killed / total:.1%}")
            if killed < LEAST.get(room, 0) * total:
                bad.append(f"{room}: at least {LEAST[room]:.0%} must be killed")
    print("\n".join(bad))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
