"""Descriptions for the OpenAPI document from the docstrings of the classes that its schemas stand for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any, Final

_SECTION: Final = re.compile(r"^Attributes:\n(.*?)(?=^\w+:\n|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_MILLISECONDS: Final = re.compile(r",? (?:in )?(?:ms|milliseconds) since the epoch|, (?:in )?ms\b")
"""How a docstring says that Python has a point in time as a number; JSON has it as text."""


def described(classes: Iterable[type[Any]]) -> dict[str, str]:
    """What the docstrings of classes say about their attributes; the first that names one decides."""
    found: dict[str, str] = {}
    for one in classes:
        section = _SECTION.search(inspect.getdoc(one) or "")
        for name, text in _ENTRY.findall(section[1] if section else ""):
            found.setdefault(name, _for_json(text))
    return found


def summary(of: object) -> str:
    """The first paragraph of a docstring, for readers of JSON; empty if there is none."""
    return _for_json((inspect.getdoc(of) or "").partition("\n\n")[0])


def _for_json(text: str) -> str:
    text = " ".join(text.split())
    text = _MILLISECONDS.sub("", text).replace("``", "`")
    text = re.sub(r"\bNone\b", "null", text)
    text = re.sub(r"\bTrue\b", "true", re.sub(r"\bFalse\b", "false", text))
    return text[:1].upper() + text[1:]
