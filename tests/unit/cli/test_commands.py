"""Each command: its answer for people and for programs, and its exit code."""

from __future__ import annotations

import json
import time

import pytest

from fanin.cli.exits import MEANINGS, ExitCode, code_of
from fanin.cli.main import options_first
from fanin.domain.batch import State
from fanin.errors import (
    AccessDenied,
    BatchGone,
    BatchNotFound,
    FaninError,
    LimitReached,
    NotConfigured,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from fanin.wire.times import encode_time
from tests.spans import spans


@pytest.fixture
def group(tracker):
    return tracker.add(tracker.open(user_key="k").batch_id, 10)


class TestBatches:
    def test_open_prints_the_id(self, run, tracker):
        result = run("open", "--user-key", "catalog")
        batch = tracker.status(int(result.stdout)).batch
        assert (batch.user_key, batch.state) == ("catalog", State.OPEN)

    def test_open_takes_everything_a_batch_has(self, run, tracker, group):
        deadline = encode_time(time.time_ns() // 1_000_000 + 86_400_000)
        result = run(
            *("open", "--json", "--user-key", "u", "--idle-ttl", "15m", "--lifetime", "30d"),
            *("--on-deadline", "complete", "--limit", 50, "--parent-item", group[0]),
            *("--meta", "a=b", "--meta", "c=d=e", "--deadline", deadline),
        )
        assert result.exit_code == 0, result.stderr
        found = result.document
        assert found["open_idle_ttl"] == 900
        assert (found["limit"], found["parent_item"]) == (50, group[0])
        assert (found["on_deadline"], found["deadline"]) == ("complete", deadline)
        assert found["metadata"] == {"a": "b", "c": "d=e"}

    def test_open_with_a_key_opens_once(self, run):
        first = run("open", "--user-key", "nightly", "--key", "run-7")
        assert run("open", "--user-key", "nightly", "--key", "run-7").stdout == first.stdout
        assert run("open", "--user-key", "nightly", "--key", "run-8").stdout != first.stdout

    def test_add_prints_the_group_or_all_ids(self, run, tracker):
        batch = tracker.open().batch_id
        prefix = run("add", batch, 3).stdout.strip()
        assert tracker.ack(f"{prefix}:2")[0].first == 1
        ids = run("add", batch, 3, "--ids").stdout.split()
        assert tracker.ack(ids)[0].first == 3
        assert run("add", batch, 2, "--json").document["upto"] == 2

    def test_add_with_a_key_adds_once(self, run, tracker):
        batch = tracker.open().batch_id
        first, second = (run("add", batch, 3, "--key", "x").stdout for _ in range(2))
        assert first == second
        assert tracker.status(batch).batch.items == 3

    def test_close_and_cancel_say_the_state(self, run, group, tracker):
        assert run("close", group.batch_id).stdout.strip() == "closed"
        assert run("cancel", group.batch_id, "--json").document["state"] == "cancelled"

    def test_list_follows_pages(self, run, tracker):
        opened = {tracker.open().batch_id for _ in range(12)}
        page = run("list", "--limit", 5, "--json").document
        assert len(page["batches"]) <= 5
        assert page["cursor"]
        every = run("list", "open", "--all", "--json").document["batches"]
        assert {batch["batch_id"] for batch in every} == opened
        assert "--cursor" in run("list", "--limit", 5).stderr


class TestItems:
    def test_ack_takes_ids_and_ranges(self, run, tracker, group):
        result = run("ack", group[0], group[0], "--range", f"{group.prefix}:2..5", "--json")
        [receipt] = result.document["batches"]
        assert (receipt["first"], receipt["duplicates"], receipt["ranged"]) == (1, [group[0]], 3)
        assert [(span.start, span.stop) for span in tracker.iter_missing(group.batch_id)] == [(1, 2), (5, 10)]

    @pytest.mark.parametrize(
        ("text", "left"), [("", []), (":3..", [(0, 3)]), (":..3", [(3, 10)]), (":4..5", [(0, 4), (5, 10)])]
    )
    def test_ranges_are_half_open_and_either_end_may_be_left_out(self, run, tracker, group, text, left):
        assert run("ack", "--range", group.prefix + text).exit_code == 0
        assert [(span.start, span.stop) for span in tracker.iter_missing(group.batch_id)] == left

    def test_ids_come_from_stdin_line_by_line(self, run, tracker, group):
        result = run("ack", "-", stdin="\n".join(group) + "\r\n\n")
        assert result.exit_code == 0, result.stderr
        assert list(tracker.iter_missing(group.batch_id)) == []

    def test_counts_go_to_estimated_batches(self, run, tracker):
        batch = tracker.open(mode="estimated").batch_id
        tracker.add(batch, 5)
        tracker.close(batch)
        assert run("ack", "--count", f"{batch}=5", "--json").document["batches"][0]["complete"]

    def test_fail_takes_a_reason_for_all_and_for_each(self, run, tracker, group):
        assert run("fail", group[1], "--reason", "torn").exit_code == 0
        assert run("fail", "-", "--reason", "wet", stdin=f"{group[0]}\n{group[2]}\tlate\n").exit_code == 0
        assert [failure.reason for failure in tracker.iter_failures(group.batch_id)] == [
            "wet",
            "torn",
            "late",
        ]

    @pytest.mark.parametrize("command", ["ack", "fail"])
    def test_nothing_named_is_wrong_usage(self, run, command):
        assert run(command).exit_code == ExitCode.USAGE

    @pytest.mark.parametrize(
        "args",
        [
            ("ack", "--range", "x"),
            ("ack", "--range", "1:g:5"),
            ("ack", "--count", "1:2"),
            ("status", "one"),
            ("status", str(2**53)),
            ("open", "--meta", "a"),
            ("open", "--idle-ttl", "2 weeks"),
            ("open", "--deadline", "tomorrow"),
            ("open", "--mode", "sloppy"),
            ("missing", "1", "--limit", "0"),
            ("no-such-command",),
            ("status", "1", "--no-such-option"),
        ],
        ids=" ".join,
    )
    def test_wrong_usage_is_told_apart(self, run, args):
        result = run(*args)
        assert result.exit_code == ExitCode.USAGE
        assert result.stdout == ""
        assert "Error" in result.stderr


class TestReading:
    def test_status_says_how_far(self, run, tracker, group):
        tracker.ack(group[:4])
        assert "4 of 10 (40.0%)" in run("status", group.batch_id, "--exact").stdout
        found = run("status", group.batch_id, "--exact", "--json").document
        assert (found["done_min"], found["done_max"], found["items"]) == (4, 4, 10)

    def test_missing_gives_ranges_that_can_be_acknowledged(self, run, tracker, group):
        tracker.ack(group[3:7])
        page = run("missing", group.batch_id, "--json").document
        assert spans(page["ranges"]) == [[0, 3], [7, 10]]
        for span in page["ranges"]:
            run("ack", "--range", f"{span['group']}:{span['from']}..{span['to']}")
        assert run("missing", group.batch_id, "--all").stdout.strip() == "nothing is missing"

    def test_what_is_piped_is_not_cut(self, run, tracker, group):
        tracker.fail(group[0], "a reason " * 50)
        shown = run("failures", group.batch_id).stdout
        assert group[0] in shown
        assert ("a reason " * 50).strip() in shown

    def test_no_failures(self, run, group):
        assert run("failures", group.batch_id).stdout.strip() == "nothing failed"
        assert run("failures", group.batch_id, "--all", "--json").document == {"failures": [], "cursor": None}

    def test_verify_of_a_sound_batch(self, run, group):
        result = run("verify", group.batch_id)
        assert (result.exit_code, "all agrees" in result.stdout) == (0, True)

    def test_verify_exits_with_1_where_something_disagrees(self, run, tracker, group):
        # Given: a batch whose items are done and that nobody completed
        batches = tracker.ledger.ports.batches
        tracker.ack(group)
        batches.close(group.batch_id, now=0)
        # When
        result = run("verify", group.batch_id, "--no-repair")
        # Then
        assert (result.exit_code, "left as it is" in result.stdout) == (ExitCode.WRONG, True)
        assert run("verify", group.batch_id, "--json").document["repaired"]
        assert run("verify", group.batch_id).exit_code == 0
        assert tracker.status(group.batch_id).batch.state is State.COMPLETE


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
        assert run("ack", "1:2:3").exit_code == ExitCode.REFUSED

    def test_ctrl_c_is_clean(self, run, tracker, monkeypatch):
        def interrupt(*args, **kwargs):
            raise KeyboardInterrupt

        monkeypatch.setattr(tracker, "status", interrupt)
        result = run("status", 5)
        assert (result.exit_code, result.stdout, result.stderr) == (130, "", "\n")

    def test_nothing_configured_is_told(self, run, monkeypatch, tmp_path):
        from typer.testing import CliRunner

        from fanin.cli.main import app

        monkeypatch.chdir(tmp_path)
        for name in ("FANIN_PROFILE", "FANIN_API_URL", "FANIN_BATCHES_TABLE"):
            monkeypatch.delenv(name, raising=False)
        for args in (["status", "1"], ["status", "1", "--local"], ["status", "1", "--api-url", "x"]):
            result = CliRunner().invoke(app, args)
            assert result.exit_code == ExitCode.DENIED
            assert result.stderr.startswith("fanin: ")

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (BatchNotFound, 3),
            (BatchGone, 3),
            (RequestTooLarge, 4),
            (LimitReached, 4),
            (Throttled, 5),
            (ServiceUnavailable, 5),
            (AccessDenied, 6),
            (NotConfigured, 6),
            (FaninError, 1),
        ],
    )
    def test_exit_codes_are_stable(self, error, code):
        assert code_of(error("x")) == code

    def test_every_exit_code_has_a_meaning(self):
        assert set(MEANINGS) == set(ExitCode)


class TestOptions:
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
    def test_common_options_may_stand_anywhere(self, given, ordered):
        assert options_first(given) == ordered


def test_openapi_is_the_document_that_the_api_serves(run):
    result = run("openapi", "--json")
    assert result.document["openapi"].startswith("3.1")
    assert "/v1/acks" in result.document["paths"]


def test_help_loads_neither_boto3_nor_rich_nor_powertools():
    import subprocess
    import sys

    code = (
        "import sys\nfrom fanin.cli.main import app\napp(['--help'], standalone_mode=False)\n"
        "print([m for m in ('boto3', 'rich', 'pyarrow', 'aws_lambda_powertools') if m in sys.modules])"
    )
    lines = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()  # noqa: S603
    assert lines[-1] == "[]"
