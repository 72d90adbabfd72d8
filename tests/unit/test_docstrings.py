"""The examples in docstrings do what they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import fanin

ROOT = Path(str(fanin.__file__)).parent
NEEDS_SPARK = ROOT / "spark"


def modules() -> list[str]:
    """The modules whose examples run without Spark and without a stack."""
    files = (path for path in ROOT.rglob("*.py") if NEEDS_SPARK not in path.parents)
    return sorted(
        ".".join(("fanin", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for path in files
        if any(">>> " in line and "+SKIP" not in line for line in path.read_text().splitlines())
    )


def test_there_are_examples():
    assert {"fanin.client.tracker", "fanin.app.bisect", "fanin.adapters.backoff"} <= set(modules())


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_run(name):
    failed, attempted = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert attempted > 0
    assert failed == 0
