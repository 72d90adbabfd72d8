"""docs/how-to/redrive.md runs."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "redrive.md").read_text()


def test_its_example_sends_each_failure_once() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    exec(compile(example, "docs/how-to/redrive.md", "exec"), {})  # noqa: S102
