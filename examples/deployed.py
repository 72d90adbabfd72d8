"""Where examples run: fanin on an emulator, and an example's own stacks beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fanin.local import CHECKOUT, CONTEXT, INPUTS, Stack, deploy, down, synthesize, up


@contextmanager
def deployed(
    root: Path, example: Path, say: Callable[[str], None], *, sources: Sequence[str], auth: bool = False
) -> Iterator[tuple[Stack, dict[str, str]]]:
    """An emulator with fanin and an example deployed to it; gone afterwards.

    Args:
        root: where the emulator keeps its state and log.
        example: the example's folder.
        say: told what takes time.
        sources: files and folders in it that its stacks follow from, ``app.py`` among them.
        auth: verify signatures and enforce policies.

    Yields:
        fanin, and the outputs of all stacks.
    """
    down(root)  # what an earlier run left, had it been killed
    try:
        stack = up(root, auth=auth, report=say)
        say("deploying the example")
        yield stack, beside(stack, example, sources)
    finally:
        say("stopping the emulator")
        down(root)


def beside(stack: Stack, example: Path, sources: Sequence[str]) -> dict[str, str]:
    """Deploy an example to where fanin is.

    Args:
        stack: fanin.
        example: the example's folder.
        sources: as for ``deployed``.

    Returns:
        The outputs of all stacks.
    """
    assembly = CHECKOUT / ".fanin" / "cdk.out" / example.name
    inputs = [CHECKOUT / name for name in INPUTS] + [example / name for name in sources]
    synthesize(example / "app.py", assembly, inputs=inputs, context=CONTEXT)
    return deploy(assembly, stack.endpoint_url)
