"""Runs an example on this machine: fanin on an emulator, with the stacks of the example beside it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from fanin.local import CHECKOUT, INPUTS, App, Stack, Steps, down, exclusive, log_file, up


def example(folder: Path, *sources: str) -> App:
    """The app of an example, which has the stack of fanin, too.

    Args:
        folder: of the example.
        sources: files and folders in it from which its stacks follow, besides ``app.py``.
    """
    inputs = [CHECKOUT / name for name in INPUTS] + [folder / name for name in ("app.py", *sources)]
    return App(folder / "app.py", inputs)


@contextmanager
def deployed(root: Path, step: Steps, app: App | None = None, *, auth: bool = False) -> Iterator[Stack]:
    """Start an emulator with fanin and an example deployed to it, and stop it afterwards.

    Args:
        root: folder whose ``.fanin`` folder gets the state and the log of the emulator.
        step: shows what happens.
        app: of the example; None deploys fanin alone.
        auth: verify signatures and enforce policies.

    Raises:
        LocalStackFailed: this demo runs already, or the stack cannot be deployed.
    """
    runs = (
        f"this demo runs here already, since {datetime.now().astimezone():%H:%M:%S}; its state is in {root}\n"
        "Wait until it ends, or interrupt it there."
    )
    with exclusive(root / ".fanin" / "demo.lock", runs):
        down(root)  # an earlier run may have been killed
        try:
            yield up(root, app=app, auth=auth, report=step)
        except Exception as error:
            error.add_note(f"the emulator's log: {log_file(root)}")
            raise
        finally:
            # A second Ctrl-C would leave it running.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            step("stopping the emulator")
            down(root)
            step.done()
            signal.signal(signal.SIGINT, before)
