"""Builds wheels and sdists into dist/, and tries the wheels as a user would. ``make dist`` runs this.

The wheel then writes the OpenAPI document of its version into openapi/, another asset of a release.

Needs Python 3.11 or later, Node.js and a package index. Tools and trials get virtual environments of their
own in a temporary folder, so neither can use what a checkout happens to have installed.

"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import constructs
from away import ROOT, check, environment, run

TOOLS = ("build==1.6.1", "twine==7.0.0")
DIST = ROOT / "dist"
OPENAPI = ROOT / "openapi"
LIBRARY = ROOT / "layers" / "fanin" / "python" / "fanin"
CONSTRUCTS = ROOT / "infra" / "fanin_cdk"
NEEDED = (
    "fanin/py.typed",
    "fanin/console/templates/overview.html",
)  # data, which a build forgets most easily

IMPORT_ALL = """\
import fanin, fanin.local
for module in (fanin, fanin.local):
    for name in module.__all__:
        getattr(module, name)
    print(f"{module.__name__}: all {len(module.__all__)} names import")
"""


def files(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def sources(package: Path) -> dict[str, bytes]:
    """The files of a package in the checkout, by their paths in a wheel."""
    return {
        path.relative_to(package.parent).as_posix(): path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def build(folder: Path, tools: Path, project: Path, wanted: dict[str, bytes]) -> Path:
    """Build sdist and wheel of a project, and check what is in them.

    Args:
        folder: where a wheel goes that is built without the sdist, to compare.
        tools: programs of the environment with build and twine.
        project: folder with a pyproject.toml.
        wanted: what has to be in the wheel, and nothing else but metadata.

    Returns:
        The wheel.
    """
    left = project / "build"  # setuptools would pack what an earlier build left there
    shutil.rmtree(left, ignore_errors=True)
    before = set(DIST.glob("*"))
    run(tools / "python", "-m", "build", "--outdir", DIST, project)  # the wheel from the sdist
    built = sorted(set(DIST.iterdir()) - before)
    print(run(tools / "twine", "check", "--strict", *built))
    (wheel,) = (path for path in built if path.suffix == ".whl")
    packed = files(wheel)
    lost = sorted(name for name, content in wanted.items() if packed.get(name) != content)
    check(not lost, f"{wheel.name} lacks, or has another version of: {', '.join(lost)}")
    check(any(name.endswith(".dist-info/licenses/LICENSE") for name in packed), f"{wheel.name} lacks LICENSE")
    strange = sorted(name for name in packed if name not in wanted and ".dist-info/" not in name)
    check(not strange, f"{wheel.name} has what the package has not: {', '.join(strange)}")
    shutil.rmtree(left, ignore_errors=True)
    run(tools / "python", "-m", "build", "--wheel", "--outdir", folder, project)
    shutil.rmtree(left, ignore_errors=True)
    check(files(folder / wheel.name) == packed, f"the sdist builds another {wheel.name} than the checkout")
    print(
        f"{wheel.name}: {len(packed)} files, all of the package among them; the sdist builds the same wheel"
    )
    return wheel


def try_library(folder: Path, wheel: Path) -> None:
    """Install the wheel of the library where nothing else is, and use it."""
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


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    with TemporaryDirectory() as made:
        folder = Path(made)
        programs = environment(folder / "tools", *TOOLS)
        wanted = sources(LIBRARY)
        check(wanted.keys() >= set(NEEDED), f"the package lacks one of {NEEDED}")
        library = build(folder / "direct", programs, ROOT, wanted)
        wanted = sources(CONSTRUCTS) | constructs.bundled()
        wheel = build(folder / "direct", programs, ROOT / "infra", wanted)
        try_library(folder, library)
        constructs.try_out(folder, library, wheel)


if __name__ == "__main__":
    main()
