"""The command line: ``fanin``."""

import sys

from fanin.cli.exits import ExitCode


def run() -> None:
    """Run the command line; without the extra ``cli``, say in one line how to install it."""
    try:
        from fanin.cli.main import main

        main()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.stderr.write(f"fanin: the command line needs {error.name}: pip install 'fanin[cli]'\n")
        raise SystemExit(ExitCode.DENIED) from None
