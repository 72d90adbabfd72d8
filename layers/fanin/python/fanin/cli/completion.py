"""The command ``fanin completion``: prints the script with which a shell completes commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from fanin.cli.session import session

app = typer.Typer()


class Shell(StrEnum):
    """A shell whose completion is known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(
    ctx: typer.Context,
    shell: Annotated[Shell, typer.Argument(help="The shell that is to complete.")],
) -> None:
    """Print the script with which a shell completes commands and options.

    In bash: eval "$(fanin completion bash)". Unlike --show-completion it does not look for the shell that
    runs it, so it also works while an image is built.
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="fanin", complete_var="_FANIN_COMPLETE", shell=shell.value)
    session(ctx).answer({"shell": shell.value, "script": script}, script)
