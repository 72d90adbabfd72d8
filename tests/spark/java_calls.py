"""Calls of Java that tests do without.

- Packages and classes by their names, of which each is looked up once. PySpark asks for the same few with
  every call of a function, one part of a name after the other. Java looks for a class of each part in 280
  jars: a tenth of the time of the tests.
- The line of code that each action and each step of a plan comes from, for which Python and Java read their
  stacks, and which only Spark's UI shows.
"""

from collections.abc import Callable

import pytest
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from pyspark import SparkContext
from pyspark.traceback_utils import SCCallSiteSync

CALL_SITE = {"callSite.short": "a test", "callSite.long": "a test"}
"""Properties of a thread. With both of them Spark does not look where a call comes from."""


def remember(patch: pytest.MonkeyPatch) -> None:
    """Let views of a JVM, and packages, remember what they have found; Java moves none of it."""
    for place in (JVMView, JavaPackage):
        patch.setattr(place, "__getattr__", _remembering(place))


def say_no_lines(patch: pytest.MonkeyPatch, context: SparkContext) -> None:
    """Let all that this thread asks for come from the same place."""
    patch.setattr(SCCallSiteSync, "__init__", lambda *_: None)
    patch.setattr(SCCallSiteSync, "__enter__", lambda *_: None)
    patch.setattr(SCCallSiteSync, "__exit__", lambda *_: None)
    for name, value in CALL_SITE.items():
        context.setLocalProperty(name, value)


def _remembering(place: type[JVMView | JavaPackage]) -> Callable[[JVMView | JavaPackage, str], object]:
    look_up = place.__getattr__

    def found(self: JVMView | JavaPackage, name: str) -> object:
        known = look_up(self, name)
        # A name in capitals that is no class yet may become one, as soon as somebody imports it.
        if isinstance(known, JavaClass) or (isinstance(known, JavaPackage) and name.islower()):
            self.__dict__[name] = known
        return known

    return found
