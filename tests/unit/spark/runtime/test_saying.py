"""Lines for people who may stop reading."""

from __future__ import annotations

import os
from io import StringIO

import pytest

from fanin.spark.runtime.progress import say


def test_a_line_is_written_at_once() -> None:
    out = StringIO()
    say("one", out)
    say("two", out, end="")
    assert out.getvalue() == "one\ntwo"


def test_what_nobody_reads_any_more_is_no_error() -> None:
    # Given a pipe whose reader has gone
    reading, writing = os.pipe()
    os.close(reading)

    with os.fdopen(writing, "w") as out:
        # When lines are written, then none is an error, nor is the end of the stream
        for _ in range(3):
            say("line", out)


def test_a_stream_without_a_file_that_nobody_reads_is_no_error() -> None:
    class Gone(StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    say("line", Gone())


def test_other_errors_are_not_hidden() -> None:
    out = StringIO()
    out.close()
    with pytest.raises(ValueError, match="closed"):
        say("line", out)
