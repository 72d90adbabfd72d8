"""docs/how-to/totals.md runs."""

from __future__ import annotations

from tests.docs import pages


def test_its_example_runs() -> None:
    (example,) = pages.code("how-to/totals.md")
    exec(compile(example, "docs/how-to/totals.md", "exec"), {})  # noqa: S102
