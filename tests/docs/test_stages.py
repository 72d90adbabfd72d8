"""docs/how-to/stages.md runs."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "stages.md").read_text()


def test_its_examples_run_one_after_the_other() -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    scope: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/how-to/stages.md", "exec"), scope)  # noqa: S102
