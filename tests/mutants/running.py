"""Runs tests against mutants: each in a process of its own, several at a time."""

import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
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

from tests.mutants.mutate import Mutant

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "layers" / "fanin" / "python"
PACKAGE: Final = SOURCES / "fanin"

PASSED: Final = 0
FAILED: Final = 1
TOO_SLOW: Final = 10
"""How tests ended that took too long; pytest itself never ends with this."""
PATIENCE: Final = 5
"""How many times as long as the original a mutant may take: some never end."""
LEAST_SECONDS: Final = 10
"""How long it may take even where the original takes no time."""


class Mutated(MetaPathFinder, SourceFileLoader):
    """Imports one module from code in memory."""

    def __init__(self, path: Path, code: CodeType) -> None:
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
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


def run(tests: Sequence[str], change: Mutated | None, seconds: float, *plugins: object) -> int:
    """Run tests in a process of its own.

    Args:
        tests: files and folders.
        change: the mutant; None for the original.
        seconds: how long they may take.
        plugins: more plugins of pytest.

    Returns:
        `PASSED`, `TOO_SLOW`, or something else if they failed.
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
            code = os.waitstatus_to_exitcode(status)
            return TOO_SLOW if code == -signal.SIGALRM else code
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TOO_SLOW


class Original(Exception):
    """The tests do not even pass without a mutant."""


@cache
def seconds_of(tests: tuple[str, ...]) -> float:
    """How long tests may take with a mutant."""
    with tempfile.NamedTemporaryFile() as note:
        libraries = Libraries(Path(note.name))
        began = time.monotonic()
        if run(tests, None, 600, libraries) != PASSED:
            raise Original(f"{' '.join(tests)} fail without any mutant; mend them first")
        took = time.monotonic() - began
        libraries.load()
    return max(LEAST_SECONDS, PATIENCE * took)


def outcome(change: Mutated, allowed: Sequence[tuple[Sequence[str], float]]) -> int:
    """How the tests of a mutant end, each group of tests with the seconds that it may take."""
    ended = (run(tests, change, seconds) for tests, seconds in allowed)
    code = next((code for code in ended if code != PASSED), PASSED)
    return code if code in {PASSED, TOO_SLOW} else FAILED


def outcomes(
    module: Path, found: Sequence[Mutant], tests: Sequence[tuple[str, ...]], processes: int
) -> Iterator[tuple[Mutant, int]]:
    """Run tests against mutants of a module, several mutants at a time.

    Args:
        module: relative to the package.
        found: the mutants.
        tests: groups of tests; a group runs if the mutant has passed those before it.
        processes: how many mutants to try at a time.

    Yields:
        Each mutant and how its tests ended, as soon as they have: `PASSED`, `FAILED` or `TOO_SLOW`.
    """
    allowed = [(group, seconds_of(group)) for group in tests] if found else []
    waiting = list(reversed(found))
    running: dict[int, Mutant] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            mutant = waiting.pop()
            if (child := os.fork()) == 0:
                code = os.EX_SOFTWARE
                try:
                    code = outcome(Mutated(PACKAGE / module, mutant.code), allowed)
                finally:
                    os._exit(code)
            running[child] = mutant
        child, status = os.wait()
        mutant = running.pop(child)
        code = os.waitstatus_to_exitcode(status)
        if code not in {PASSED, TOO_SLOW, FAILED}:
            sys.exit(f"{mutant.name}: its process ended with {code}; expected one of 0, {FAILED}, {TOO_SLOW}")
        yield mutant, code
