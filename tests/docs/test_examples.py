"""The Python of how-tos that need nothing but fanin: it runs, block after block, and its asserts hold."""

import pytest

from tests.docs import pages

PAGES = [
    "deadlines",
    "failures",
    "growing",
    "hold",
    "migrating",
    "nesting",
    "patterns/directory",
    "patterns/frames",
    "redrive",
    "stages",
    "results",
    "totals",
]


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_run(name: str) -> None:
    page = f"how-to/{name}.md"
    examples = pages.code(page)
    assert examples
    scope: dict[str, object] = {}
    for example in examples:
        exec(compile(example, f"docs/{page}", "exec"), scope)  # noqa: S102
