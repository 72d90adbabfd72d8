"""The commands by name; the module of a command is imported when it is called, or its help is shown."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any, Final

import typer

MODULES: Final = {
    "open": "batches",
    "add": "batches",
    "close": "batches",
    "cancel": "batches",
    "list": "batches",
    "expire": "batches",
    "ack": "items",
    "fail": "items",
    "status": "reading",
    "item": "reading",
    "missing": "reading",
    "failures": "reading",
    "verify": "reading",
    "redrive": "redrive",
    "release": "release",
    "why": "why",
    "targets": "targets",
    "watch": "watching",
    "fanout": "fanout",
    "replies": "scatters",
    "scatter": "scatters",
    "directory": "directory",
    "route": "routes",
    "frame": "frames",
    "buffer": "buffers",
    "plan": "plan",
    "restore": "restore",
    "spark": "spark",
    "openapi": "stack",
    "local": "stack",
    "ui": "ui",
    "completion": "completion",
}
"""Name of each command or group → the module in this folder that declares it, in the order of the help."""


class Commands(MutableMapping[str, Any]):
    """Name → command, made when it is asked for: a call needs one of them, and all take half of its time."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(MODULES[name])[name]
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        raise NotImplementedError(f"{name} stays: commands are declared in this module")

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


def _made(module: str) -> Any:
    """All commands of a module, as they are called."""
    group = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    group.add_typer(import_module(f"fanin.cli.{module}").app)
    made: Any = typer.main.get_group(group)
    return made.commands
