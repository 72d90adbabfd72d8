"""docs/how-to/hold.md runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fanin import Tracker

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "hold.md").read_text()


def test_its_examples_run_in_order() -> None:
    scope: dict[str, Any] = {"tracker": Tracker.in_memory()}
    examples = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        exec(compile(example, "docs/how-to/hold.md", "exec"), scope)  # noqa: S102
