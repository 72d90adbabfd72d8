"""Imports of the functions, relative to what nearly every Lambda function in Python imports.

Time varies by a fifth between runs on the same machine. The compiled code that is imported does not vary: it
is counted, and has the bound.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figures import Figure

ROOT = Path(__file__).resolve().parent.parent
LAYER = ROOT / "layers" / "fanin" / "python"
ROUNDS = 7
BASELINE = "import boto3; from aws_lambda_powertools import Logger"
BOTO3_TOO = "import boto3; import handler"

PRODUCERS = ("fan_out",)
"""Functions that use the library, which imports boto3: only the second figure can be compared."""

FOR_PEOPLE = ("console",)
"""Functions that are not in the path of any message: whoever opens a page waits for the first one."""

_TIMED = """\
import time
start = time.process_time()
{code}
print(time.process_time() - start)
"""
_SIZED = """\
import os, sys
before = set(sys.modules)
{code}
new = [module for name, module in sys.modules.copy().items() if name not in before]
compiled = {{module.__cached__ for module in new if getattr(module, "__cached__", None)}}
print(sum(os.path.getsize(path) for path in compiled))
"""


def size() -> list[Figure]:
    """Compiled code that a function imports, in bytes; the extensions in C that it loads do not count."""
    with TemporaryDirectory() as cache:
        base = _run(_SIZED, BASELINE, ROOT, cache)
        sizes = {
            folder.name: _run(_SIZED, "import handler", folder, cache) / base
            for folder in _functions()
            if folder.name not in PRODUCERS
        }
    return [
        Figure(
            "code imported by the largest function, over boto3 and Logger",
            max(sizes.values()),
            at_most=0.8,
            note=_list(sizes),
        )
    ]


def seconds() -> list[Figure]:
    """Every function, alone and with boto3, which it needs for its first call at the latest.

    This is CPU time, which other processes disturb little. Each sample is taken in a new interpreter; a first
    round, which is not counted, compiles the files.
    """
    functions = _functions()
    with TemporaryDirectory() as cache:
        samples: dict[tuple[str, Path], list[float]] = {}
        for counted in [False] + [True] * ROUNDS:
            for code, folder in [(BASELINE, ROOT)] + [
                (c, f) for f in functions for c in ("import handler", BOTO3_TOO)
            ]:
                sample = _run(_TIMED, code, folder, cache)
                if counted:
                    samples.setdefault((code, folder), []).append(sample)
    medians = {key: statistics.median(values) for key, values in samples.items()}
    base = medians.pop((BASELINE, ROOT))
    alone = {
        folder.name: medians[("import handler", folder)] / base
        for folder in functions
        if folder.name not in PRODUCERS
    }
    whole = {folder.name: medians[(BOTO3_TOO, folder)] / base for folder in functions}
    return [
        Figure(
            "import of the slowest function, over boto3 and Logger",
            max(alone.values()),
            at_most=1.25,
            note=_list(alone),
        ),
        Figure("the same, when it imports boto3 besides", max(whole.values()), note=_list(whole)),
    ]


def _functions() -> list[Path]:
    found = sorted(path.parent for path in ROOT.glob("functions/*/handler.py"))
    return [folder for folder in found if folder.name not in FOR_PEOPLE]


def _run(program: str, code: str, folder: Path, cache: str) -> float:
    """What a program prints that runs the code with the import path that the function has in Lambda."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPYCACHEPREFIX": cache, "PYTHONPATH": os.pathsep.join([str(folder), str(LAYER)])}
    command = [sys.executable, "-c", program.format(code=code)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
    return float(done.stdout)


def _list(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
