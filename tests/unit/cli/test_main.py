"""The whole command line: usage, errors, common options, limits and cursors."""

import json

import pytest
from typer.testing import CliRunner

from fanin.cli.exits import ExitCode
from fanin.cli.main import app, options_first


@pytest.mark.parametrize(
    "args",
    [
        ("ack", "--range", "x"),
        ("ack", "--count", "1:2"),
        ("status", str(2**53)),
        ("open", "--meta", "a"),
        ("open", "--idle-ttl", "2 weeks"),
        ("open", "--deadline", "tomorrow"),
        ("open", "--mode", "sloppy"),
        ("no-such-command",),
        ("status", "1", "--no-such-option"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_told_apart(run, args):
    result = run(*args)
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    assert "Error" in result.stderr


class TestErrors:
    def test_an_error_is_one_line_on_stderr(self, run):
        result = run("status", 5)
        assert (result.exit_code, result.stdout) == (ExitCode.NOT_FOUND, "")
        assert result.stderr.startswith("fanin: there is no batch 5")
        assert result.stderr.count("\n") == 1

    def test_with_json_it_is_a_problem(self, run):
        result = run("status", 5, "--json")
        assert result.exit_code == ExitCode.NOT_FOUND
        assert json.loads(result.stderr)["type"] == "urn:fanin:problem:batch-not-found"

    def test_a_refusal(self, run, tracker, group):
        tracker.close(group.batch_id)
        assert run("add", group.batch_id, 1).exit_code == ExitCode.REFUSED

    def test_what_is_invalid_is_of_one_kind_whoever_notices(self, run, tmp_path):
        (tmp_path / "rows.data").write_text("a\n1\n")
        by_the_service, by_itself = run("ack", "1:2:3"), run("fanout", tmp_path / "rows.data", "--queue", "q")
        assert (by_the_service.exit_code, by_itself.exit_code) == (ExitCode.USAGE, ExitCode.USAGE)

    def test_ctrl_c_is_clean(self, run, tracker, monkeypatch):
        def interrupt(*args, **kwargs):
            raise KeyboardInterrupt

        monkeypatch.setattr(tracker, "status", interrupt)
        result = run("status", 5)
        assert (result.exit_code, result.stdout, result.stderr) == (130, "", "\n")

    def test_nothing_configured_is_told(self, run, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        for name in ("FANIN_PROFILE", "FANIN_API_URL", "FANIN_BATCHES_TABLE"):
            monkeypatch.delenv(name, raising=False)
        for args in (["status", "1"], ["status", "1", "--local"], ["status", "1", "--api-url", "x"]):
            result = CliRunner().invoke(app, args)
            assert result.exit_code == ExitCode.DENIED
            assert result.stderr.startswith("fanin: ")


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        (["status", "1", "--json"], ["--json", "status", "1"]),
        (["status", "--api-url", "u", "1"], ["--api-url", "u", "status", "1"]),
        (["status", "--api-url=u", "1", "--local"], ["--api-url=u", "--local", "status", "1"]),
        (["ack", "--", "--json"], ["ack", "--", "--json"]),
        (["status", "--api-url"], ["--api-url", "status"]),
    ],
)
def test_common_options_may_stand_anywhere(given, ordered):
    assert options_first(given) == ordered


def test_no_command_shows_the_help_and_the_exit_codes(run):
    result = run()
    assert result.exit_code == ExitCode.USAGE
    shown = result.stdout + result.stderr
    assert "Usage: fanin" in shown
    assert all(code.meaning in " ".join(shown.split()) for code in ExitCode)


LISTS = [("list",), ("missing", "1"), ("failures", "1"), ("frame", "status", "1"), ("route", "list")]


@pytest.mark.parametrize(
    ("command", "size"), [(("list",), 0), (("list",), "ten"), *((command, 1_001) for command in LISTS)]
)
def test_a_page_has_1_to_1000_results(run, command, size):
    result = run(*command, "--limit", size)
    assert result.exit_code == ExitCode.USAGE
    assert "--limit" in result.stderr


@pytest.mark.parametrize("command", ["status", "close", "cancel", "watch", "verify", "replies"])
def test_a_batch_id_is_a_number(run, command):
    result = run(command, "catalog-42")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert "catalog-42" in result.stderr


def test_pages_follow_each_other_by_cursor_and_all_lists_every_page(run, tracker):
    # Given three failures, listed one a page
    batch = tracker.open().batch_id
    group = tracker.add(batch, 3)
    for item in group:
        tracker.fail(item, "torn")
    # When each page is asked for with the cursor of the one before
    found, more = [], ()
    while more is not None:
        page = run("failures", batch, "--limit", 1, "--json", *more).document
        found += [failure["item"] for failure in page["failures"]]
        more = ("--cursor", page["cursor"]) if page["cursor"] else None
    # Then they are the same as with --all
    every = run("failures", batch, "--all", "--json").document["failures"]
    assert found == [failure["item"] for failure in every] == list(group)
