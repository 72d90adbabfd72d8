"""What a job says, and about how far it is."""

import io
import os
import time
from io import StringIO

import pytest

from fanin.spark.runtime import progress
from fanin.spark.runtime.progress import JobProgress, say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def eventually(holds) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("done", "seconds", "said"),
    [
        (0, 100, "0 of 134,217,728 words, 0%"),
        (1_000_000, 5, "1,000,000 of 134,217,728 words, 1%"),
        (1_000_000, 250, "1,000,000 of 134,217,728 words, 1%, 4,000 a second, 9 h 15 min left"),
        (130_000_000, 13_000, "130,000,000 of 134,217,728 words, 97%, 10,000 a second, 7 min 1 s left"),
        (134_000_000, 13_400, "134,000,000 of 134,217,728 words, 100%, 10,000 a second, 21 s left"),
        (134_217_728, 13_421.7728, "134,217,728 of 134,217,728 words, 100%, 10,000 a second"),
        (200_000_000, 13_421.7728, "134,217,728 of 134,217,728 words, 100%, 10,000 a second"),
    ],
)
def test_the_line(done, seconds, said):
    now = iter([0.0, seconds])
    shown = JobProgress("words", 134_217_728, lambda: done, out=io.StringIO(), clock=lambda: next(now))
    assert shown.line() == said


def test_a_log_gets_whole_lines_and_the_last_word(monkeypatch):
    monkeypatch.setattr(progress, "IN_LOG", 0.01)
    out, done = io.StringIO(), [0]
    with JobProgress("words", 10, lambda: done[0], out=out):
        eventually(lambda: "0 of 10 words, 0%\n" in out.getvalue())
        done[0] = 4
        eventually(lambda: "4 of 10 words, 40%\n" in out.getvalue())
        done[0] = 10
    assert out.getvalue().endswith("10 of 10 words, 100%\n")
    assert "\r" not in out.getvalue()


def test_a_terminal_gets_one_line_that_changes():
    out = Terminal()
    with JobProgress("words", 10, lambda: 5, out=out):
        eventually(lambda: "5 of 10" in out.getvalue())
    assert out.getvalue().count("\n") == 1
    assert "━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌ 5 of 10 words, 50%" in out.getvalue()


def test_a_step_that_fails_leaves_the_line_as_it_was():
    out = io.StringIO()
    with pytest.raises(KeyError), JobProgress("words", 10, lambda: 5, out=out):
        raise KeyError("rows")
    assert out.getvalue() == "5 of 10 words, 50%\n"


def test_a_line_is_written_at_once():
    out = StringIO()
    say("one", out)
    say("two", out, end="")
    assert out.getvalue() == "one\ntwo"


def test_what_nobody_reads_any_more_is_no_error():
    # Given a pipe whose reader has gone
    reading, writing = os.pipe()
    os.close(reading)

    with os.fdopen(writing, "w") as out:
        # When lines are written, then none is an error, nor is the end of the stream
        for _ in range(3):
            say("line", out)


def test_a_stream_without_a_file_that_nobody_reads_is_no_error():
    class Gone(StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    say("line", Gone())
