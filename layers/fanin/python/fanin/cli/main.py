"""The command ``fanin``: common options, all subcommands, and the handling of errors."""

import errno
import io
import os
import sys
from itertools import islice
from types import SimpleNamespace
from typing import Any, Final

import typer
from typer import core

from fanin import __version__
from fanin.cli.commands import CommandGroup, Commands, flag, option
from fanin.cli.exits import ExitCode, code_of
from fanin.cli.session import session
from fanin.errors import FaninError, InvalidRequest

_parameter: Any = getattr(core, "_TyperParameter", None)
_typers: Any = getattr(_parameter, "get_runtime_param", None)
"""What gives the object with which Typer converts a value; another version of Typer may lack it."""


def _coerce(value: Any, param: Any, ctx: Any) -> Any:
    """The value of a parameter as the command gets it; what needs a library is converted by Typer.

    Raises:
        typer.BadParameter: it is not what the parameter takes.
    """
    several = param.multiple or param.nargs == -1
    if value is None:
        return () if several else None
    parser = param.type_descriptor.parameter_info.parser
    if parser is None and not several and type(value) is param.type_descriptor.annotation:
        return value
    try:
        if parser is None:
            return _typers(param).coerce(value, param=param, ctx=ctx)
        if several:
            return [parser(text) for text in value]
        return parser(value) if isinstance(value, str) else value  # a default needs no parser
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from None
    except typer.BadParameter as error:
        error.message = error.message.replace("Value error, ", "")  # as pydantic begins
        raise


def without_pydantic() -> None:
    """Have Typer convert texts, defaults, and what a parser of ours takes, without importing pydantic."""
    if _typers is not None:
        _parameter.get_runtime_param = lambda _: SimpleNamespace(coerce=_coerce)


HELP_OPTIONS: Final = ("-h", "--help")
_UNWRITTEN: Final = {errno.ENOSPC: "no space is left where it goes", errno.EBADF: "stdout is closed"}


class _Fanin(CommandGroup):
    """A group whose options may come before or after the command, and whose errors take one line."""

    def __init__(self, **attributes: Any) -> None:
        without_pydantic()
        super().__init__(**{**attributes, "commands": Commands()})

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is Click's
        return list(self.commands)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        session(ctx).words = tuple(args)
        return super().parse_args(ctx, options_first(args))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FaninError as error:
            session(ctx).explain(error)
            raise typer.Exit(code_of(error)) from error
        except BrokenPipeError:
            # Whoever read the answer has enough of it, as head does. Python must not try to write the rest.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.BROKEN_PIPE) from None
        except OSError as error:
            if error.errno not in _UNWRITTEN:
                raise
            typer.echo(f"fanin: the answer could not be written: {_UNWRITTEN[error.errno]}", err=True)
            raise typer.Exit(ExitCode.WRONG) from error
        except KeyboardInterrupt:
            typer.echo("", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from None


def options_first(args: list[str]) -> list[str]:
    """Move the common options in front of the command, where Click expects them; stops at ``--``."""
    ahead: list[str] = []
    rest: list[str] = []
    stream = iter(args)
    for arg in stream:
        if arg == "--":
            return [*ahead, *rest, arg, *stream]
        if arg in ("--json", "--local") or arg.startswith("--api-url="):
            ahead.append(arg)
        elif arg == "--api-url":
            ahead += [arg, *islice(stream, 1)]
        else:
            rest.append(arg)
    return ahead + rest


_STDERR: Final = 2

app = typer.Typer(
    name="fanin",
    cls=_Fanin,
    epilog="\b\nExit codes:\n" + "\n".join(f"{code.value:>5}  {code.meaning}" for code in ExitCode),
    no_args_is_help=True,
    context_settings={"help_option_names": list(HELP_OPTIONS)},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fanin {__version__}")
        raise typer.Exit


@app.callback()
def fanin(
    ctx: typer.Context,
    as_json: bool = flag("Print one JSON document.", "--json"),
    local: bool = flag("Use the stack of `fanin local up`.", "--local"),
    api_url: str | None = option("Use the API at this URL.", metavar="URL"),
    version: bool = option(
        "Print the version.", "--version", default=False, callback=_version, is_eager=True
    ),
) -> None:
    """Know, exactly and at once, when a fan-out is finished.

    Without --local and --api-url the environment names the stack: FANIN_PROFILE=local,
    FANIN_API_URL, or FANIN_BATCHES_TABLE and the other tables. These options may also come
    after the command.
    """
    del version  # its callback has printed it
    run = session(ctx)
    run.as_json, run.local, run.api_url = as_json, local, api_url


def _ready_streams() -> None:
    """Give remarks a place where stderr is closed, and let every text be written, whatever the encoding."""
    if sys.stderr is None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != _STDERR:  # else what is opened next would get its number, and the remarks
            os.dup2(nowhere, _STDERR)
            os.close(nowhere)
        sys.stderr = open(_STDERR, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command line."""
    _ready_streams()
    app()


if __name__ == "__main__":
    main()
