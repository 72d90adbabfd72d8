"""Converts values of the command line without pydantic, whose import takes as long as a call of the API.

Typer 0.29 converts every value with pydantic, also texts and options that are not given. It has no setting
for that, so the method that gives a parameter its converter is replaced here. A version of Typer without the
method is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from typer import core

_OWNER: Final = "_TyperParameter"
_METHOD: Final = "get_runtime_param"


class Plain:
    """Converts what needs no library: texts, what a parser of ours takes, options that are not given.

    Args:
        typers: gives what Typer converts the other values with.
    """

    def __init__(self, typers: Callable[[], Any]) -> None:
        self._typers = typers

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it.

        Raises:
            typer.BadParameter: it is not what the parameter takes.
        """
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if not several and isinstance(value, str):
            parser = param.type_descriptor.parameter_info.parser
            if parser is not None:
                return parser(value)
            if param.type_descriptor.annotation is str:
                return value
        return self._typers().coerce(value, param=param, ctx=ctx)


def without_pydantic() -> None:
    """Have Typer convert plain values without pydantic, in this process; a second call does nothing."""
    owner = getattr(core, _OWNER, None)
    typers = getattr(owner, _METHOD, None)
    if owner is None or typers is None or getattr(typers, "plain", False):
        return

    def plain(param: Any) -> Plain:
        return Plain(lambda: typers(param))

    plain.plain = True  # type: ignore[attr-defined]
    setattr(owner, _METHOD, plain)
