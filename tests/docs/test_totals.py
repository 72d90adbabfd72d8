"""docs/how-to/totals.md runs."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "totals.md").read_text()


def test_its_example_runs() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    exec(compile(example, "docs/how-to/totals.md", "exec"), {})  # noqa: S102
