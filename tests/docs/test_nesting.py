"""docs/how-to/nesting.md runs."""

from __future__ import annotations

from tests.docs import pages


def test_its_example_runs() -> None:
    (example,) = pages.code("how-to/nesting.md")
    exec(compile(example, "docs/how-to/nesting.md", "exec"), {})  # noqa: S102
