"""Classes of Java by their names, of which each is looked up once.

PySpark asks for the same few classes with every call of a function, and Java looks for some of them in other
packages first, in 280 jars: a twenty-fifth of the time of the tests.
"""

from __future__ import annotations

import pytest
from py4j.java_gateway import JavaClass, JVMView


def remember(patch: pytest.MonkeyPatch) -> None:
    """Let every view of a JVM remember the classes that it has found; they stay where they are."""
    look_up = JVMView.__getattr__

    def found(view: JVMView, name: str) -> object:
        known = look_up(view, name)
        if isinstance(known, JavaClass):
            view.__dict__[name] = known
        return known

    patch.setattr(JVMView, "__getattr__", found)
