"""Names that a module shows and other modules define, each loaded with its first use."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def names_of(module: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__all__``, ``__getattr__`` and ``__dir__`` of a module whose stub declares what it shows.

    The stub is the file beside it that ends in ``.pyi``, which type checkers read. Each of its lines is
    ``from home import name as name``.
    """
    spec: Any = sys.modules[module].__spec__
    text = spec.loader.get_data(f"{spec.origin.rpartition('.')[0]}.pyi").decode()
    homes = {name: home for home, name in re.findall(r"^from (\S+) import (\w+) as ", text, re.MULTILINE)}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return sorted(homes), get, lambda: sorted({*vars(sys.modules[module]), *homes})
