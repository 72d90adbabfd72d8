"""docs/how-to/stages.md runs."""

from __future__ import annotations

from tests.docs import pages


def test_its_examples_run_one_after_the_other() -> None:
    examples = pages.code("how-to/stages.md")
    assert len(examples) == 2
    scope: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/how-to/stages.md", "exec"), scope)  # noqa: S102
