"""What the layers install is pinned whole, with hashes, and belongs to what they ask for."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("runtime/requirements", "console/requirements", "spark/requirements", "spark/requirements-3.5")
REFERRED = re.compile(r"^-r (\S+)$", re.MULTILINE)
ASKED = re.compile(r"^([a-z0-9-]+)==(\S+)$", re.MULTILINE)
PINNED = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; (?P<marker>.+?))? \\\n"
    r"(?P<hashes>(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)"
    r"    # via(?P<via>(?:(?:\n    #  )? .+)+)$",
    re.MULTILINE,
)
COMPILED = {"wrapt", "markupsafe", "numpy", "pandas", "pyarrow"}
"""Packages with wheels of their own for each processor and each Python."""


def files(lock: str) -> list[Path]:
    """What a lock is made from: a file, and those that it refers to."""
    first = ROOT / "layers" / f"{lock}.in"
    return [first, *(first.with_name(name) for name in REFERRED.findall(first.read_text()))]


def asked(lock: str) -> dict[str, str]:
    return {name: version for file in files(lock) for name, version in ASKED.findall(file.read_text())}


def locked(lock: str) -> dict[str, re.Match[str]]:
    text = (ROOT / "layers" / f"{lock}.txt").read_text()
    found = {match["name"]: match for match in PINNED.finditer(text)}
    # Nothing in the file is left over that was not understood.
    rest = PINNED.sub("", text)
    assert [line for line in rest.splitlines() if line and not line.startswith("#")] == []
    return found


def wanted_by(pin: re.Match[str]) -> set[str]:
    """The packages, or the file, for which a package is installed; not the file that constrains versions."""
    lines = (line.strip("# ") for line in pin["via"].splitlines())
    return {line for line in lines if line and not line.startswith("-c ")}


@pytest.mark.parametrize("lock", LOCKS)
def test_the_pins_are_those_of_what_the_layer_asks_for(lock):
    # Given what a layer asks for, and what it installs
    pins = locked(lock)
    given = asked(lock)
    assert given
    # Then every package asked for has the version that was asked for
    assert {name: pins[name]["version"] for name in given} == given
    # And the others are those that these need, and none that is left from before
    named = {f"-r {file.relative_to(ROOT)}" for file in files(lock)}
    assert {name for name, pin in pins.items() if named & wanted_by(pin)} == set(given)
    for name, pin in pins.items():
        assert wanted_by(pin) <= named | set(pins), name


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_has_hashes_and_compiled_ones_have_one_for_each_target(lock):
    for name, pin in locked(lock).items():
        hashes = pin["hashes"].count("--hash=")
        # Two processors, of Python 3.11 to 3.14 at least.
        assert hashes >= (8 if name in COMPILED else 1), name


def test_layers_that_one_function_has_agree_in_what_both_bring():
    # Given the console, which has both layers
    runtime, console = locked("runtime/requirements"), locked("console/requirements")
    for name in runtime.keys() & console.keys():
        assert runtime[name]["version"] == console[name]["version"]


def test_what_makes_the_pins_covers_all_layers():
    assert "for asked in layers/*/requirements*.in; do" in (ROOT / "Makefile").read_text()
    assert {f"{path.parent.name}/{path.stem}" for path in ROOT.glob("layers/*/requirements*.in")} == set(
        LOCKS
    )
