"""Which tracker commands use, and how answers, remarks and errors are printed."""

import io
import json

import pytest
from rich.console import Console

from fanin import Tracker
from fanin.cli.session import Session, with_stdin
from fanin.errors import BatchNotFound, Throttled


@pytest.fixture
def chosen(monkeypatch):
    """Records which way a tracker is made, in place of making it."""
    made = []
    for name in ("local", "from_env"):
        monkeypatch.setattr(Tracker, name, classmethod(lambda cls, name=name: made.append(name)))
    monkeypatch.setattr(Tracker, "over_https", classmethod(lambda cls, url: made.append(url)))
    return made


class TestTracker:
    def test_the_environment_decides_without_options_once(self, chosen):
        session = Session()
        assert (session.tracker, session.tracker) == (None, None)
        assert chosen == ["from_env"]

    def test_options_come_before_the_environment(self, chosen):
        assert Session(local=True, api_url="https://api").tracker is None
        assert Session(api_url="https://api").tracker is None
        assert chosen == ["local", "https://api"]

    def test_a_given_one_is_used_instead(self, chosen):
        tracker = Tracker.in_memory()
        assert Session(local=True, given=tracker).tracker is tracker
        assert chosen == []

    def test_the_stack_is_named_and_a_url_that_does_not_count(self, monkeypatch, capsys):
        monkeypatch.setenv("FANIN_API_URL", "https://api")
        Session().say_stack()
        monkeypatch.setenv("FANIN_PROFILE", "local")
        Session().say_stack()
        Session(as_json=True).say_stack()
        assert capsys.readouterr().err.splitlines() == [
            "stack: https://api",
            "stack: local; FANIN_PROFILE is used, and not FANIN_API_URL=https://api",
        ]


class TestAnswer:
    def test_people_get_the_text(self, capsys):
        Session().answer({"a": 1}, "one", "two [bold]")
        assert capsys.readouterr().out == "one\ntwo [bold]\n"

    def test_a_terminal_gets_a_command_whole_however_long_it_is(self):
        screen = io.StringIO()
        session = Session()
        session.stdout = Console(file=screen, highlight=False, width=32)
        told = "  → Fix the cause, and then run `fanin expire --batch 246567202357832 --yes`. Or wait."
        session.answer({}, told)
        assert screen.getvalue().splitlines() == [
            "  → Fix the cause, and then run",
            "`fanin expire --batch 246567202357832 --yes`.",
            "Or wait.",
        ]

    def test_programs_get_one_document(self, capsys):
        Session(as_json=True).answer({"name": "Zürich"}, "text")
        assert capsys.readouterr().out == '{"name": "Zürich"}\n'

    def test_output_that_is_piped_is_not_wrapped(self, capsys):
        Session().answer({}, "word " * 200)
        assert capsys.readouterr().out.count("\n") == 1

    def test_a_remark_is_not_in_the_answer(self, capsys):
        Session().remark("batch 7")
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", "batch 7\n")


def test_more_says_how_to_go_on_but_not_at_the_end_or_with_json(capsys):
    for session, cursor in ((Session(), "abc"), (Session(), None), (Session(as_json=True), "abc")):
        session.more(cursor)
    assert capsys.readouterr().err == "more results: pass --cursor abc, or --all\n"


class TestExplain:
    def test_an_error_takes_one_line(self, capsys):
        Session().explain(BatchNotFound("gone\n  for\tgood"))
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", "fanin: gone for good\n")

    def test_with_json_it_is_a_problem_document_that_says_when_to_retry(self, capsys):
        Session(as_json=True).explain(Throttled("slow down", retry_after=3))
        assert json.loads(capsys.readouterr().err) == {
            "type": "urn:fanin:problem:throttled",
            "detail": "slow down",
            "retry_after": 3,
        }


def test_lines_of_stdin_have_no_ends_and_empty_ones_are_skipped(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a\r\n\n  b \n \nc\td"))
    assert list(with_stdin(["x", "-"])) == ["x", "a", "b", "c\td"]


def test_a_terminal_wraps_at_its_width(monkeypatch):
    screen = io.StringIO()
    session = Session()
    session.stdout = Console(file=screen, width=20)
    session.answer({}, "word " * 8)
    assert screen.getvalue().count("\n") == 2
