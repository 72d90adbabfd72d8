"""The files around the code, the pictures, and the files that documents name: all are there, and fit."""

import re
import struct
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import fanin
from tests.browser.screenshots import PICTURES, SIZES

ROOT = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in parsed(workflow)["jobs"].values() for step in job.get("steps", [])]


def by_name(path: Path) -> str:
    return path.name


def test_the_changelog_says_nothing_twice_and_groups_what_it_says():
    text = (ROOT / "CHANGELOG.md").read_text()
    entries = [line.partition(". ")[0].rstrip(".") for line in text.splitlines() if line.startswith("- ")]
    assert len(set(entries)) == len(entries)
    groups = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert len(set(groups)) == len(groups) > 0


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=by_name)
def test_what_a_workflow_runs_exists(workflow):
    commands = "\n".join(step["run"] for step in steps(workflow) if "run" in step)
    made = re.findall(r"\bmake ([a-z-]+)", commands)
    assert set(made) <= TARGETS
    started = re.findall(r"^(\.ci/\S+)", commands, re.MULTILINE)
    assert all((ROOT / path).is_file() for path in started)
    assert made or started
    for job in parsed(workflow)["jobs"].values():
        assert (ROOT / job.get("uses", ".")).exists()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=by_name)
def test_a_workflow_trusts_nobody_more_than_it_must(workflow):
    # Actions are pinned to a commit, and the comment tells people and Dependabot its version
    used = re.findall(r"uses: (?!\./)(.+)$", workflow.read_text(), re.MULTILINE)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    # Permissions are the least, and secrets and a checkout's credentials are nowhere
    content = parsed(workflow)
    granted = [content["permissions"], *(job.get("permissions", {}) for job in content["jobs"].values())]
    least = ({}, {"contents": "read"}, {"id-token": "write"}, {"contents": "write"})
    assert all(permission in least for permission in granted), granted
    assert "secrets" not in workflow.read_text()
    for step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    assert "group" in content["concurrency"]


def test_the_library_is_tested_on_every_python_that_it_names():
    (matrix,) = (
        job["strategy"]["matrix"]["python"]
        for job in parsed(GITHUB / "workflows" / "ci.yml")["jobs"].values()
        if "strategy" in job
    )
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_only_the_job_that_publishes_may_ask_for_a_token():
    jobs = parsed(GITHUB / "workflows" / "release.yml")["jobs"]
    asking = [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})]
    assert asking == ["publish"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish", "template"}


def test_only_the_job_that_runs_no_code_of_ours_may_write_to_the_repository():
    writing = {
        name: job
        for workflow in WORKFLOWS
        for name, job in parsed(workflow)["jobs"].items()
        if job.get("permissions") == {"contents": "write"}
    }
    assert set(writing) == {"template"}
    used = [step["uses"].partition("@")[0] for step in writing["template"]["steps"] if "uses" in step]
    assert used == ["actions/download-artifact"]
    assert writing["template"]["needs"] == ["publish"]  # nothing is released that was not published


def test_both_packages_are_of_one_version():
    constructs = tomllib.loads((ROOT / "infra" / "pyproject.toml").read_text())["project"]
    assert "version" in constructs["dynamic"]
    assert "version" in PROJECT["dynamic"]
    assert fanin.__version__ not in (ROOT / "infra" / "setup.py").read_text()
    assert constructs["license"] == PROJECT["license"]
    assert constructs["requires-python"] == PROJECT["requires-python"]
    assert (ROOT / "infra" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_cdk_of_the_constructs_includes_the_one_that_tests_use():
    (lowest,) = re.findall(r'"aws-cdk-lib>=([0-9.]+),<3"', (ROOT / "infra" / "setup.py").read_text())
    (pinned,) = (
        one.removeprefix("aws-cdk-lib==")
        for one in PROJECT["optional-dependencies"]["infra"]
        if one.startswith("aws-cdk-lib==")
    )
    parts = [tuple(int(part) for part in version.split(".")[:2]) for version in (lowest, pinned)]
    assert parts == sorted(parts)
    assert f"`aws-cdk-lib` {lowest} and later" in (ROOT / "docs" / "how-to" / "deployment.md").read_text()


def test_dependabot_watches_every_file_of_pins():
    updates = {update["package-ecosystem"]: update for update in parsed(GITHUB / "dependabot.yml")["updates"]}
    assert set(updates) == {"pip", "github-actions"}
    pinned = {f"/{path.parent.relative_to(ROOT)}" for path in ROOT.glob("layers/*/requirements.in")}
    assert set(updates["pip"]["directories"]) == {"/", *pinned}


def test_emr_gets_what_the_jobs_need():
    extras = PROJECT["optional-dependencies"]
    needed = {re.split(r"[<>=]", one)[0] for one in extras["spark"]} - {"pyspark"}
    pins = "\n".join((ROOT / "layers/spark" / name).read_text() for name in ("common.in", "requirements.in"))
    given = re.findall(r"^([a-z0-9-]+)==", pins, re.MULTILINE)
    assert set(given) == needed | {"boto3"}


def test_tests_take_every_extra():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = pyproject["dependency-groups"]

    def packages(group):
        for one in groups[group]:
            yield from packages(one["include-group"]) if isinstance(one, dict) else [one]

    taken = re.findall(r"fanin\[(.+?)\]", "\n".join(packages("test")))
    extras = {extra for several in taken for extra in several.split(",")}
    assert extras | {"spark"} == set(PROJECT["optional-dependencies"])  # which spark-local takes


def test_commits_are_judged_by_what_make_lint_runs():
    # Given the commands of `make lint`, less the options that only check
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    linted = {re.sub(r" --check| \.$", "", line) for line in re.findall(r"\$\(BIN\)/(.+)", recipe[1])}
    # When they are compared with the hooks of this repository
    (local,) = (
        repo["hooks"] for repo in parsed(ROOT / ".pre-commit-config.yaml")["repos"] if repo["repo"] == "local"
    )
    hooked = {hook["entry"].removeprefix(".venv/bin/").removesuffix(" --force-exclude") for hook in local}
    # Then they are the same
    assert hooked == linted


PACKAGE = ROOT / "layers" / "fanin" / "python" / "fanin"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
HOUSE = PAGE.split("## The house")[1].split("\n## ")[0]
TEXTS = {"architecture": PAGE, "contributing": (ROOT / "CONTRIBUTING.md").read_text()}
ROOMS = ("ledger", "scatters", "buffers", "directory")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_file_that_it_names_is_there(text):
    # Given the files that the page names, with each room where it says <room>
    told = set(re.findall(r"`([a-z0-9_/<>]+/[a-z0-9_<>]+\.py)`", text))
    named = {path.replace("<room>", room) for path in told for room in ROOMS}
    assert len(named) > 10
    # Then each is in the package, or else in the repository
    assert {path for path in named if not (PACKAGE / path).is_file() and not (ROOT / path).is_file()} == set()


def test_it_has_every_room_and_no_other():
    told = set(re.findall(r"`([a-z0-9_/]+)/`", HOUSE)) | {"app"}
    there = {str(found.parent.relative_to(PACKAGE)) for found in PACKAGE.rglob("__init__.py")}
    assert told == there - {".", "entry/http/v1"}


def test_it_has_every_function():
    table = PAGE.split("| function |")[1].split("\n\n")[0]
    told = re.findall(r"^\| ([a-z_]+) \|", table, re.MULTILINE)
    assert sorted(told) == sorted(folder.parent.name for folder in ROOT.glob("functions/*/handler.py"))


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LARGEST = 150_000
"""Bytes of a picture."""


def linked() -> set[Path]:
    """The files that pages show as pictures."""
    return {
        (page.parent / link).resolve()
        for page in PAGES
        for link in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text())
        if "://" not in link
    }


def test_each_picture_is_shown_and_each_that_is_shown_is_there():
    assert linked() == {PICTURES / f"{name}.png" for name in SIZES} == set(PICTURES.iterdir())


def test_pictures_have_their_sizes_and_are_small():
    for name, size in SIZES.items():
        content = (PICTURES / f"{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG"), f"{name}: run `make screenshots`"
        assert struct.unpack(">II", content[16:24]) == size
        assert len(content) <= LARGEST


def test_tests_mirror_a_module_or_say_what_they_are_about():
    """A folder of tests is a room of the package."""
    unit = ROOT / "tests" / "unit"
    others = {"bench", "examples", "functions"}
    rooms = {
        folder.relative_to(unit)
        for folder in unit.rglob("*")
        if folder.is_dir()
        and folder.name != "__pycache__"
        and folder.relative_to(unit).parts[0] not in others
    }
    assert {room for room in rooms if not (PACKAGE / room).is_dir()} == set()
