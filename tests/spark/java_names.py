"""Packages and classes of Java by their names, of which each is looked up once.

PySpark asks for the same few classes with every call of a function, one part of a name after the other. Java
looks for a class of each part in 280 jars: a tenth of the time of the tests.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from py4j.java_gateway import JavaClass, JavaPackage, JVMView


def remember(patch: pytest.MonkeyPatch) -> None:
    """Let views of a JVM, and packages, remember what they have found; Java moves none of it."""
    for place in (JVMView, JavaPackage):
        patch.setattr(place, "__getattr__", _remembering(place))


def _remembering(place: type[JVMView | JavaPackage]) -> Callable[[JVMView | JavaPackage, str], object]:
    look_up = place.__getattr__

    def found(self: JVMView | JavaPackage, name: str) -> object:
        known = look_up(self, name)
        # A name in capitals that is no class yet may become one, as soon as somebody imports it.
        if isinstance(known, JavaClass) or (isinstance(known, JavaPackage) and name.islower()):
            self.__dict__[name] = known
        return known

    return found
