"""docs/how-to/redrive.md runs."""

from __future__ import annotations

from tests.docs import pages


def test_its_example_sends_each_failure_once() -> None:
    (example,) = pages.code("how-to/redrive.md")
    exec(compile(example, "docs/how-to/redrive.md", "exec"), {})  # noqa: S102
