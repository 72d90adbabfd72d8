"""Runs an example on this machine: fanin on an emulator, with the stacks of the example beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fanin.local import CHECKOUT, CONTEXT, INPUTS, Stack, deploy, down, synthesize, up


@contextmanager
def deployed(
    root: Path, example: Path, say: Callable[[str], None], *, sources: Sequence[str], auth: bool = False
) -> Iterator[tuple[Stack, dict[str, str]]]:
    """Start an emulator with fanin and an example deployed to it, and stop it afterwards.

    Args:
        root: folder whose ``.fanin`` folder gets the state and the log of the emulator.
        example: folder of the example.
        say: called with a line of text before each step that takes long.
        sources: files and folders of the example from which its stacks follow, including ``app.py``.
        auth: verify signatures and enforce policies.

    Yields:
        The stack of fanin, and the outputs of all stacks.
    """
    down(root)  # an earlier run may have been killed
    try:
        stack = up(root, auth=auth, report=say)
        say("deploying the example")
        yield stack, beside(stack, example, sources)
    finally:
        say("stopping the emulator")
        down(root)


def beside(stack: Stack, example: Path, sources: Sequence[str]) -> dict[str, str]:
    """Deploy an example to the emulator on which fanin runs.

    Args:
        stack: the stack of fanin.
        example: folder of the example.
        sources: as for ``deployed``.

    Returns:
        The outputs of all stacks.
    """
    assembly = CHECKOUT / ".fanin" / "cdk.out" / example.name
    inputs = [CHECKOUT / name for name in INPUTS] + [example / name for name in sources]
    synthesize(example / "app.py", assembly, inputs=inputs, context=CONTEXT)
    return deploy(assembly, stack.endpoint_url)
