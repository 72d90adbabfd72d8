"""The commands by name; the module of a command is imported when it is called, or its help is shown."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

SECTIONS: Final = {
    "Send work": {"fanout": "fanout", "open": "batches", "add": "batches", "close": "batches"},
    "See what is going on": {
        "attention": "reading",
        "why": "reading",
        "list": "batches",
        "status": "reading",
        "watch": "watching",
        "item": "reading",
        "missing": "reading",
        "failures": "reading",
        "results": "reading",
        "targets": "reading",
        "ui": "stack",
    },
    "Mend": {
        "redrive": "redrive",
        "resend": "fanout",
        "release": "redrive",
        "ack": "items",
        "fail": "items",
        "change": "batches",
        "cancel": "batches",
        "expire": "batches",
        "verify": "reading",
        "restore": "stack",
    },
    "Patterns": {
        "scatter": "patterns",
        "replies": "patterns",
        "frame": "patterns",
        "buffer": "patterns",
        "directory": "directory",
        "route": "directory",
    },
    "The service": {"local": "stack", "plan": "plan", "spark": "spark", "openapi": "stack"},
}
"""What commands are for → name of each command or group → the module in this folder that declares it."""
MODULES: Final = {name: module for section in SECTIONS.values() for name, module in section.items()}


class CommandGroup(TyperGroup):
    """Commands whose help lines are whole sentences, in sections if there are many."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the commands; Click would cut each at the width of the screen."""
        named: dict[str, Any] = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        for title, names in (SECTIONS if len(named) == len(MODULES) else {"Commands": named}).items():
            with formatter.section(title):
                formatter.write_dl([(name, named[name].get_short_help_str(limit=1_000)) for name in names])


def group(name: str, text: str) -> typer.Typer:
    """A group of commands; called without one, it shows its help, which begins with the text."""
    return typer.Typer(cls=CommandGroup, name=name, help=text, no_args_is_help=True)


def option(text: str, *names: str, default: Any = None, **more: Any) -> Any:
    """An option of one command; its help, and its names unless they follow from that of the parameter."""
    return typer.Option(default, *names, help=text, **more)


def flag(text: str, *names: str) -> Any:
    """An option without a value."""
    return typer.Option(False, *names, help=text)


def argument(text: str, *, default: Any = ..., **more: Any) -> Any:
    """An argument of one command, which must be given unless it has a default."""
    return typer.Argument(default, help=text, **more)


class Commands(Mapping[str, Any]):
    """Name → command, made when it is asked for: a call needs one of them, and all take half of its time."""

    def __getitem__(self, name: str) -> Any:
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


@cache
def _made(name: str) -> Any:
    """A command, as it is called. The others of its module are not made: each takes milliseconds."""
    declared: Any = import_module(f"fanin.cli.{MODULES[name]}").app
    only: Any = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if declared.info.name == name:
        only.add_typer(declared)
    for one in declared.registered_commands:
        if name in (one.name, one.callback.__name__):
            only.registered_commands.append(one)
    for group in declared.registered_groups:
        if name in (group.name, group.typer_instance.info.name):
            only.registered_groups.append(group)
    return typer.main.get_group(only).commands[name]
