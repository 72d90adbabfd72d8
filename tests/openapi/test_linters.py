"""The linters that others use have nothing to say about the OpenAPI document."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.npm.packages import node
from tests.openapi.tools import linters, written

pytestmark = pytest.mark.soak


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [node(), str(linters() / program), *map(str, arguments)],
        cwd=linters(),
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(linters().parent),
            "REDOCLY_TELEMETRY": "off",
            "CI": "true",
        },
        check=False,
        capture_output=True,
        text=True,
    )


def redocly(document: Path) -> list[str]:
    """Rules that Redocly finds broken, warnings as well as errors."""
    done = run("redocly", "lint", "--extends", "recommended", "--format", "json", document)
    return [problem["ruleId"] for problem in json.loads(done.stdout)["problems"]]


def spectral(document: Path, folder: Path) -> list[str]:
    """The same by Spectral's rules for OpenAPI."""
    ruleset = folder / "ruleset.json"
    ruleset.write_text('{"extends": ["spectral:oas"]}')
    done = run("spectral", "lint", "--ruleset", ruleset, "--format", "json", "--quiet", document)
    return [problem["code"] for problem in json.loads(done.stdout)]


def test_redocly_finds_nothing() -> None:
    assert redocly(written()) == []


def test_spectral_finds_nothing(tmp_path: Path) -> None:
    assert spectral(written(), tmp_path) == []


def test_both_find_what_is_wrong(tmp_path: Path) -> None:
    document = json.loads(written().read_text())
    document["components"]["schemas"]["Nobody"] = {"type": "object"}
    del document["paths"]["/v1/batches"]["post"]["operationId"]
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(document))

    assert {"no-unused-components", "operation-operationId"} <= set(redocly(wrong))
    assert {"oas3-unused-component", "operation-operationId"} <= set(spectral(wrong, tmp_path))
