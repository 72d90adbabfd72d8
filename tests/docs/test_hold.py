"""docs/how-to/hold.md runs."""

from __future__ import annotations

from typing import Any

from fanin import Tracker
from tests.docs import pages


def test_its_examples_run_in_order() -> None:
    scope: dict[str, Any] = {"tracker": Tracker.in_memory()}
    examples = pages.code("how-to/hold.md")
    assert len(examples) == 3
    for example in examples:
        exec(compile(example, "docs/how-to/hold.md", "exec"), scope)  # noqa: S102
