"""From a CDK app to a cloud assembly, only when something has changed: it takes some seven seconds."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from shutil import which
from typing import Final

from fanin.errors import LocalStackFailed
from fanin.local import locks

NOT_SOURCE: Final = ("__pycache__", ".egg-info", ".pyc")
STAMP: Final = "inputs.sha256"
ERROR_TAIL_LINES: Final = 25


def synthesize(
    app: Path, assembly: Path, *, inputs: Sequence[Path], context: Mapping[str, object] | None = None
) -> bool:
    """Run a Python CDK app, unless the assembly is already that of these inputs.

    Args:
        app: the script, run in its own folder; it reads its ``cdk.json`` itself.
        assembly: folder for the result; what is there is reused, so that bundled layers are kept.
        inputs: files and folders that the result follows from.
        context: CDK context, over what the app has of its own.

    Returns:
        Whether it ran.

    Raises:
        LocalStackFailed: the app failed; the message ends with what it said.
    """
    context = context or {}
    digest = _digest(inputs, context)
    with locks.exclusive(assembly.with_name(f"{assembly.name}.lock")):
        stamp = assembly / STAMP
        if stamp.exists() and stamp.read_text() == digest:
            return False
        stamp.unlink(missing_ok=True)
        _run(app, assembly, context)
        stamp.write_text(digest)
        return True


def _run(app: Path, assembly: Path, context: Mapping[str, object]) -> None:
    # env(1) adds to the environment without this process reading it.
    variables = {
        "CDK_OUTDIR": str(assembly),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,20,22",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    node = Path(sys.executable).with_name("node")  # `make setup` puts one there where the machine has none
    if node.exists():
        variables["JSII_NODE"] = str(node)
    settings = [f"{name}={value}" for name, value in variables.items()]
    done = subprocess.run(  # noqa: S603
        [which("env") or "env", *settings, sys.executable, app.name],
        cwd=app.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        hint = "" if node.exists() or which("node") else "\nThe CDK needs Node.js; `make setup` brings one"
        said = "\n".join(done.stderr.strip().splitlines()[-ERROR_TAIL_LINES:])
        raise LocalStackFailed(f"{app} failed:\n{said}{hint}")


def _digest(inputs: Sequence[Path], context: Mapping[str, object]) -> str:
    digest = hashlib.sha256()
    digest.update(json.dumps([sys.version, version("aws-cdk-lib"), context], sort_keys=True).encode())
    for file in _files(inputs):
        content = file.read_bytes()
        digest.update(f"{file}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _files(inputs: Sequence[Path]) -> Iterator[Path]:
    for path in inputs:
        candidates = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in candidates:
            if file.is_file() and not any(part.endswith(NOT_SOURCE) for part in file.parts):
                yield file
