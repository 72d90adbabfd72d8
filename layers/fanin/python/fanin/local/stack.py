"""Starts and stops the whole service on this machine, and says whether it runs."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from fanin.client import local_stack
from fanin.client.local_stack import FOLDER, Stack
from fanin.errors import LocalStackFailed
from fanin.local import aws, emulator, locks
from fanin.local.deploy import deploy, fingerprint
from fanin.local.synth import synthesize

CHECKOUT: Final = Path(__file__).resolve().parents[5]
EMULATOR_HOME: Final = CHECKOUT / FOLDER / "emulator"
INPUTS: Final = ("app.py", "cdk.json", "infra", "functions", "layers")

# On a laptop acknowledgements should not wait for a full window, tables should go with their stack, and what
# nobody listens to should be seen.
CONTEXT: Final[Mapping[str, object]] = {
    "local": True,
    "removal": "destroy",
    "ack_batching_window_seconds": 1,
    "unrouted": "count",
    "webhook_hosts": "localhost:*",
}


@dataclass(frozen=True)
class App:
    """A CDK app with the stack of fanin, and perhaps others beside it.

    Attributes:
        file: the script.
        inputs: files and folders from which its stacks follow.
    """

    file: Path
    inputs: Sequence[Path]


FANIN: Final = App(CHECKOUT / "app.py", [CHECKOUT / name for name in INPUTS])


@dataclass(frozen=True)
class Status:
    """Whether the local stack runs.

    Attributes:
        state: ``up``; ``starting`` (the emulator runs, but nothing is deployed: ``up`` is at work or failed
            half-way); ``unhealthy`` (the emulator runs, but does not answer); ``down``.
        stack: what is deployed; None unless the state is ``up``.
        log_file: the emulator's log.
    """

    state: Literal["up", "starting", "unhealthy", "down"]
    stack: Stack | None
    log_file: Path


def up(
    root: Path | None = None,
    *,
    port: int | None = None,
    auth: bool | None = None,
    context: Mapping[str, object] | None = None,
    app: App | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Stack:
    """Start the emulator and deploy the real stack to it; steps that are already done are skipped.

    A repeated call does nothing; after an edit it updates the running stack. An emulator that died is started
    again.

    Args:
        root: folder whose ``.fanin`` folder gets state and log; None takes the checkout.
        port: TCP port of the emulator; None keeps the port of a running emulator, or chooses a free one.
        auth: verify signatures and enforce the policies of the functions; None keeps the choice of a running
            emulator, and otherwise means False.
        context: CDK settings (docs/reference/settings.md), on top of ``CONTEXT``.
        app: what is deployed; None takes fanin alone.
        report: called with a line of text before each step that takes long.

    Returns:
        Where everything is; it is also saved as ``.fanin/local.json``. The stack of the checkout is found
        from any folder of the user.

    Raises:
        LocalStackFailed: the port is in use, the app does not synthesize, or a resource failed; the message
            says which.
    """
    if not (CHECKOUT / "app.py").exists():
        raise LocalStackFailed(
            "the local stack needs a checkout of fanin, and this fanin was installed without one; "
            "clone the repository, and run there: pip install -e '.[cli,infra]' -e infra"
        )
    app = app or FANIN
    home = root or CHECKOUT
    with locks.exclusive(home / FOLDER / "up.lock"):
        running = _emulator(home / FOLDER, port, auth, report)
        settings = {**CONTEXT, **(context or {})}
        assembly = CHECKOUT / FOLDER / "cdk.out" / _name(app, settings)
        synthesize(app.file, assembly, inputs=app.inputs, context=settings, report=report)
        wanted = fingerprint(assembly)
        stack = local_stack.read(home)
        if not (stack and aws.runs_on(stack, running) and stack.fingerprint == wanted):
            local_stack.remove(home)
            report("deploying")
            deployed = deploy(assembly, running.endpoint_url)
            stack = aws.describe(running, deployed, log_file=log_file(home), fingerprint=wanted)
            local_stack.write(home, stack)
    if root is None:
        try:
            local_stack.remember(CHECKOUT)
        except OSError as error:
            report(f"only {CHECKOUT} and the folders below it will find the stack: {error}")
    return stack


def down(root: Path | None = None) -> bool:
    """Stop the emulator, and discard everything in it except the log.

    Args:
        root: as for ``up``.

    Returns:
        Whether an emulator was running.
    """
    root = root or CHECKOUT
    with locks.exclusive(root / FOLDER / "up.lock"):
        local_stack.remove(root)
        return emulator.stop(root / FOLDER)


def status(root: Path | None = None) -> Status:
    """Whether the local stack runs; changes nothing.

    Args:
        root: as for ``up``.
    """
    root = root or CHECKOUT
    folder = root / FOLDER
    running, known = emulator.running(folder), local_stack.read(root)
    log = log_file(root)
    if running is None:
        return Status("down", None, log)
    if not running.healthy():
        return Status("unhealthy", None, log)
    if known is None or not aws.runs_on(known, running):
        return Status("starting", None, log)
    return Status("up", known, log)


def log_file(root: Path | None = None) -> Path:
    """The file to which the emulator and the functions in it log.

    Args:
        root: as for ``up``.
    """
    return emulator.log_file((root or CHECKOUT) / FOLDER)


def _emulator(
    folder: Path, port: int | None, auth: bool | None, report: Callable[[str], None]
) -> emulator.Emulator:
    """The running emulator, if it has this port and mode and answers; otherwise a new one."""
    running = emulator.running(folder)
    if running and port in (None, running.port) and auth in (None, running.auth) and running.healthy():
        return running
    emulator.stop(folder)
    python = emulator.install(EMULATOR_HOME, report)
    report("starting the emulator")
    return emulator.start(folder, python, port=port, auth=bool(auth))


def _name(app: App, context: Mapping[str, object]) -> str:
    """Name of the assembly's folder; each app and context has a folder of its own."""
    return hashlib.sha256(json.dumps([str(app.file), context], sort_keys=True).encode()).hexdigest()[:8]
