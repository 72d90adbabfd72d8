"""Mutation tests: ``python -m tests.mutants [--since REVISION] [ROOM OR MODULE ...]``.

Each mutant runs in a process of its own, which is forked after the large libraries were imported, and gets
the changed module from memory; no file is written. The tests of the module come first, then those of its
room, then those that use the room from outside. A mutant that passes them all has survived: some behaviour
has no test. A few mutants behave like the original; ``equivalents.toml`` lists them with the reason.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Final

import hypothesis
import pytest

from tests.mutants.mutate import Mutant, mutants

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "layers" / "fanin" / "python"
PACKAGE: Final = SOURCES / "fanin"
EQUIVALENTS: Final = Path(__file__).with_name("equivalents.toml")

ROOMS: Final = ("domain", "wire", "app", "adapters/dynamodb", "client")
"""What is mutated when nothing is named."""
LEAST: Final = {"domain": 0.9, "app": 0.9}
"""The share of mutants that the tests of a room must kill."""
OUTSIDE: Final[dict[str, tuple[str, ...]]] = {
    "wire": ("tests/unit/entry/http", "tests/unit/client", "tests/docs/test_openapi.py"),
    "app/ledger": ("tests/stateful/test_machine.py", "tests/behaviour/test_batches.py"),
    "app/scatters": ("tests/stateful/test_scatter_machine.py", "tests/behaviour/test_patterns.py"),
    "app/frames": ("tests/stateful/test_frame_machine.py", "tests/behaviour/test_patterns.py"),
    "app/buffers": ("tests/stateful/test_buffers.py", "tests/behaviour/test_patterns.py"),
    "app/directory": ("tests/behaviour/test_patterns.py",),
    "adapters/dynamodb": ("tests/integration",),
    "client": ("tests/behaviour",),
}
"""Room → tests that use it from outside, for mutants that the room's own tests do not kill."""

PASSED: Final = 0
PATIENCE: Final = 5
"""How many times as long as the original a mutant may take: some never end."""
LEAST_SECONDS: Final = 10
"""How long it may take even where the original takes no time."""


class Mutated(MetaPathFinder, SourceFileLoader):
    """Imports one module from code in memory."""

    def __init__(self, path: Path, code: CodeType) -> None:
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        super().__init__(name, str(path))
        self._code = code

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        loader: Loader = self
        return spec_from_file_location(fullname, self.path, loader=loader)

    def get_code(self, fullname: str) -> CodeType:
        return self._code


class Quick:
    """A plugin of pytest: examples are the same each time, and one that fails is not made smaller."""

    @staticmethod
    def pytest_sessionstart() -> None:
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile(
            "mutants", deadline=None, derandomize=True, database=None, phases=phases
        )
        hypothesis.settings.load_profile("mutants")


class Libraries:
    """A plugin of pytest that notes which libraries the tests have imported, for processes to come.

    Args:
        note: the file to note them in.
    """

    def __init__(self, note: Path) -> None:
        self._note = note

    def pytest_sessionfinish(self) -> None:
        loaded = [
            name for name, it in sys.modules.items() if "site-packages" in str(getattr(it, "__file__", ""))
        ]
        self._note.write_text("\n".join(loaded))

    def load(self) -> None:
        """Import them here, once, so that forked processes have them."""
        for name in self._note.read_text().split():
            with suppress(ImportError):
                import_module(name)


def run(tests: Sequence[str], change: Mutated | None, seconds: float, *plugins: object) -> bool:
    """Run tests in a process of its own.

    Args:
        tests: files and folders.
        change: the mutant; None for the original.
        seconds: how long they may take.
        plugins: more plugins of pytest.

    Returns:
        Whether they passed.
    """
    if (child := os.fork()) == 0:
        os.setsid()  # so that it can be ended with all that it has started
        signal.alarm(math.ceil(seconds) + 1)  # it may never end, and this process may be gone by then
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        if change is not None:
            sys.meta_path.insert(0, change)
        options = ("-x", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not soak and not emulator")
        code = int(pytest.main([*options, *tests], [Quick(), *plugins]))
        os._exit(code)
    deadline = time.monotonic() + seconds
    pause = 0.01
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == PASSED
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def stages(module: Path) -> list[tuple[str, ...]]:
    """The tests of a module of the package: its own, its room's, and others that use the room."""
    room = module.parent.as_posix()
    outside = next((tests for name, tests in OUTSIDE.items() if f"{room}/".startswith(f"{name}/")), ())
    found = [(f"tests/unit/{room}/test_{module.name}",), (f"tests/unit/{room}",), outside]
    return [tests for tests in found if tests and all((ROOT / test).exists() for test in tests)]


@dataclass
class Result:
    """What became of the mutants of a module."""

    module: str
    killed: int = 0
    survivors: list[Mutant] = field(default_factory=list)
    equivalent: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        total = self.killed + len(self.survivors)
        share = f"{self.killed / total:6.1%}" if total else "      "
        return f"{self.module:40} {self.killed:5} of {total:5} killed {share}, {self.equivalent} equivalent"


class Original(Exception):
    """The tests do not even pass without a mutant."""


@cache
def seconds_of(tests: tuple[str, ...]) -> float:
    """How long tests may take with a mutant."""
    with tempfile.NamedTemporaryFile() as note:
        libraries = Libraries(Path(note.name))
        began = time.monotonic()
        if not run(tests, None, 600, libraries):
            raise Original(f"{' '.join(tests)} fail without any mutant; mend them first")
        took = time.monotonic() - began
        libraries.load()
    return max(LEAST_SECONDS, PATIENCE * took)


def examine(module: Path, lines: set[int] | None, equivalents: dict[str, str]) -> Result:
    """Try the mutants of a module.

    Args:
        module: relative to the package.
        lines: only mutants on these lines; None for all.
        equivalents: names of mutants that behave like the original, with the reason.
    """
    path = PACKAGE / module
    result = Result(module.as_posix())
    found = list(mutants(path.read_text(), str(path)))
    result.wrong += [
        f"there is no such mutant: {name}" for name in equivalents.keys() - {m.name for m in found}
    ]
    found = [mutant for mutant in found if lines is None or mutant.line in lines]
    if not found:
        return result
    allowed = [(tests, seconds_of(tests)) for tests in stages(module)]
    for mutant in found:
        change = Mutated(path, mutant.code)
        survived = all(run(tests, change, seconds) for tests, seconds in allowed)
        if mutant.name in equivalents:
            result.equivalent += 1
            if not survived:
                result.wrong.append(f"a test kills it, so it is not equivalent: {mutant.name}")
        elif survived:
            result.survivors.append(mutant)
            print(f"  survived: {result.module}:{mutant.line} {mutant.name}", flush=True)
        else:
            result.killed += 1
    return result


def modules(wanted: Sequence[str], since: str | None) -> Iterator[tuple[Path, set[int] | None]]:
    """The modules to mutate, and which of their lines."""
    for name in wanted or ROOMS:
        place = PACKAGE / name
        if not place.exists():
            sys.exit(f"there is no {name} in {PACKAGE}; name a room or a module, such as domain/tree.py")
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            lines = changed(path, since) if since else None
            if lines != set():
                yield path.relative_to(PACKAGE), lines


def changed(path: Path, since: str) -> set[int]:
    """The lines of a file that have changed since a revision."""
    command = ["git", "diff", "--unified=0", since, "--", str(path)]
    diff = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603
    found: set[int] = set()
    for first, count in re.findall(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", diff, re.MULTILINE):
        found |= set(range(int(first), int(first) + int(count or 1)))
    return found


def main() -> int:
    """Try all mutants that were asked for, and report on them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "wanted", nargs="*", metavar="ROOM OR MODULE", help="such as domain or domain/tree.py"
    )
    parser.add_argument("--since", metavar="REVISION", help="only lines that have changed since")
    options = parser.parse_args()
    equivalents = tomllib.loads(EQUIVALENTS.read_text())
    results = []
    os.chdir(ROOT)
    for module, lines in modules(options.wanted, options.since):
        result = examine(module, lines, equivalents.get(module.as_posix(), {}))
        if result.killed or result.survivors or result.equivalent or result.wrong:
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
