"""The packages that only the report needs; they come with the extra ``fanin[report]``."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from fanin.errors import NotConfigured

_PACKAGES: Final = ("pygal", "jinja2", "markupsafe")


def load(module: str) -> Any:
    """Import a module of the extra; it is imported here, so that everything else works without the extra.

    Raises:
        NotConfigured: it is not installed. Says what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise NotConfigured(
            f"the fleet report needs {error.name or module}: pip install 'fanin[report]'"
        ) from error


def check() -> None:
    """Import all packages of the extra, before hours of work end with a page that cannot be made.

    Raises:
        NotConfigured: one is not installed. Says what to install.
    """
    for package in _PACKAGES:
        load(package)
