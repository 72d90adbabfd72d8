"""docs/how-to/patterns/buffers.md against the code."""

import re

from fanin import names
from tests.docs import pages

TEXT = pages.text("how-to/patterns/buffers.md")


def test_its_examples_run(capsys) -> None:
    first, poison = pages.code("how-to/patterns/buffers.md")
    for example in (first, poison):
        exec(compile(example, "docs/how-to/patterns/buffers.md", "exec"), {})  # noqa: S102
    assert "3 items pending of at most 3" in capsys.readouterr().out


def test_it_has_every_metric() -> None:
    told = set(re.findall(r"`(Buffers?[A-Z]\w+)`", TEXT))
    assert told == {
        names.METRIC_BUFFER_DEPTH,
        names.METRIC_BUFFER_REJECTS,
        names.METRIC_BUFFER_WAIT,
        names.METRIC_BUFFERS_UNREADABLE,
    }
