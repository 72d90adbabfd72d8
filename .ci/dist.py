"""Builds the wheel and the sdist into dist/, and tries the wheel as a user would. ``make dist`` runs this.

The wheel then writes the OpenAPI document of its version into openapi/, the other asset of a release.

Needs Python 3.11 or later and a package index. Tools and trials get virtual environments of their own in a
temporary folder, so neither can use what a checkout happens to have installed.

Usage: dist.py REQUIREMENT... (of the tools: build and twine)
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
OPENAPI = ROOT / "openapi"
PACKAGE = ROOT / "layers" / "fanin" / "python" / "fanin"
NEEDED = ("py.typed", "spark/fleet_report/report.html")  # data, which a build forgets most easily

IMPORT_ALL = """\
import fanin, fanin.local
for module in (fanin, fanin.local):
    for name in module.__all__:
        getattr(module, name)
    print(f"{module.__name__}: all {len(module.__all__)} names import")
"""


def run(*command: object, fails: bool = False) -> str:
    """Run a command away from the checkout, and return what it printed.

    Args:
        command: the program and its arguments.
        fails: whether it has to fail; what it printed to stderr is returned then.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT.anchor,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return (done.stderr if fails else done.stdout).strip()


def check(holds: object, otherwise: str) -> None:
    if not holds:
        sys.exit(otherwise)


def environment(folder: Path, *requirements: object) -> Path:
    """Make a virtual environment; its folder of programs."""
    run(sys.executable, "-m", "venv", folder)
    programs = folder / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    return programs


def files(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def build(folder: Path, tools: Path) -> Path:
    """Build sdist and wheel, and check what is in them.

    Returns:
        The wheel.
    """
    for left in (DIST, ROOT / "build"):  # setuptools would pack what an earlier build left there
        shutil.rmtree(left, ignore_errors=True)
    run(tools / "python", "-m", "build", "--outdir", DIST, ROOT)  # the wheel from the sdist
    print(run(tools / "twine", "check", "--strict", *sorted(DIST.iterdir())))
    (wheel,) = DIST.glob("*.whl")
    packed = files(wheel)
    sources = {
        f"fanin/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    lost = sorted(name for name, content in sources.items() if packed.get(name) != content)
    check(not lost, f"the wheel lacks, or has another version of: {', '.join(lost)}")
    check(all(f"fanin/{name}" in packed for name in NEEDED), f"the wheel lacks one of {NEEDED}")
    check(any(name.endswith(".dist-info/licenses/LICENSE") for name in packed), "the wheel lacks LICENSE")
    strange = sorted(name for name in packed if name not in sources and ".dist-info/" not in name)
    check(not strange, f"the wheel has what the package has not: {', '.join(strange)}")
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    run(tools / "python", "-m", "build", "--wheel", "--outdir", folder, ROOT)
    check(files(folder / wheel.name) == packed, "the sdist builds another wheel than the checkout")
    print(
        f"{wheel.name}: {len(packed)} files, all of the package among them; the sdist builds the same wheel"
    )
    return wheel


def try_out(folder: Path, wheel: Path) -> None:
    """Install the wheel where nothing else is, and use it."""
    version = wheel.name.split("-")[1]
    programs = environment(folder / "library", wheel)
    print(run(programs / "python", "-c", IMPORT_ALL))
    advice = run(programs / "fanin", "--version", fails=True)
    check(advice.count("\n") == 0 and "pip install 'fanin[cli]'" in advice, f"no help at all: {advice}")
    print(f"fanin --version, without the extra cli: {advice}")
    programs = environment(folder / "cli", f"{wheel}[cli]")
    told = run(programs / "fanin", "--version")
    check(told == f"fanin {version}", f"fanin --version says {told!r}")
    run(programs / "fanin", "--help")
    print(f"fanin --version, with it: {told}")
    programs = environment(folder / "lambda", f"{wheel}[lambda]")
    document = run(programs / "python", "-m", "fanin.entry.http")
    described = json.loads(document)["info"]["version"]
    check(described == version, f"the OpenAPI document is of version {described!r}")
    OPENAPI.mkdir(exist_ok=True)
    (OPENAPI / f"fanin-{version}.openapi.json").write_text(document + "\n")
    print(f"openapi/fanin-{version}.openapi.json: {len(document):,} characters")


def main(tools: Sequence[str]) -> None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        wheel = build(folder / "direct", environment(folder / "tools", *tools))
        try_out(folder, wheel)


if __name__ == "__main__":
    main(sys.argv[1:])
