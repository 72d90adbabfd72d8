"""Docstrings announce an example with two colons, as reStructuredText does; Markdown needs one, or none."""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Changes the docstrings that the pages of the library are made of."""

    def on_instance(
        self,
        *,
        node: ast.AST | griffe.ObjectNode,
        obj: griffe.Object,
        agent: griffe.Visitor | griffe.Inspector,
        **kwargs: Any,
    ) -> None:
        """Change the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """A docstring whose announcements of examples are those of Markdown."""
    return re.sub(r"(\S)::$", r"\1:", re.sub(r"^ *::\n\n?", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
