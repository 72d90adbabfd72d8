"""fanin ack, fail."""

import json

import pytest

from fanin.cli.exits import ExitCode


def test_ack_takes_ids_and_ranges(run, tracker, group):
    result = run("ack", group[0], group[0], "--range", f"{group.prefix}:2..5", "--json")
    [receipt] = result.document["batches"]
    assert (receipt["first"], receipt["duplicates"], receipt["ranged"]) == (1, [group[0]], 3)
    assert [(span.start, span.stop) for span in tracker.iter_missing(group.batch_id)] == [(1, 2), (5, 10)]


def test_ids_come_from_stdin_line_by_line(run, tracker, group):
    result = run("ack", "-", stdin="\n".join(group) + "\r\n\n")
    assert result.exit_code == 0, result.stderr
    assert list(tracker.iter_missing(group.batch_id)) == []


def test_counts_go_to_estimated_batches(run, tracker):
    batch = tracker.open(mode="estimated").batch_id
    tracker.add(batch, 5)
    tracker.close(batch)
    assert run("ack", "--count", f"{batch}=5", "--json").document["batches"][0]["complete"]


def test_fail_takes_a_reason_for_all_and_for_each(run, tracker, group):
    assert run("fail", group[1], "--reason", "torn").exit_code == 0
    assert run("fail", "-", "--reason", "wet", stdin=f"{group[0]}\n{group[2]}\tlate\n").exit_code == 0
    assert [failure.reason for failure in tracker.iter_failures(group.batch_id)] == ["wet", "torn", "late"]


@pytest.mark.parametrize("command", ["ack", "fail"])
def test_bad_items_are_told_one_by_one_and_the_others_are_marked(run, tracker, group, command):
    result = run(command, "-", "--json", stdin=f"{group[0]}\nnonsense\n{group[1]}\n77:{group.id}:0\n")
    assert result.exit_code == ExitCode.USAGE
    assert [receipt["first"] for receipt in result.document["batches"]] == [2]
    told = [json.loads(line) for line in result.stderr.splitlines()]
    assert [one["type"].rpartition(":")[2] for one in told] == ["invalid-item-id", "batch-not-found"]
    assert told[1]["detail"].startswith(f"77:{group.id}:0: ")
    assert tracker.status(group.batch_id, exact=True).done_min == 2


@pytest.mark.parametrize("command", ["ack", "fail"])
def test_nothing_named_is_wrong_usage(run, command):
    assert run(command).exit_code == ExitCode.USAGE


class TestTotals:
    @pytest.fixture
    def group(self, tracker):
        return tracker.add(tracker.open(totals=["rows", "cents"]).batch_id, 10)

    def totals(self, tracker, group):
        row = tracker.status(group.batch_id, exact=True).batch
        return dict(row.totals), row.totals_exact

    def test_an_item_brings_what_it_says(self, run, tracker, group):
        assert run("ack", group[0], "--total", "rows=812", "--total", "cents=-5").exit_code == 0
        assert run("fail", group[1], "--reason", "torn", "--total", "rows=1").exit_code == 0
        assert run("ack", group[0], "--total", "rows=7").exit_code == 0
        assert self.totals(tracker, group) == ({"rows": 813, "cents": -5}, True)

    def test_lines_of_stdin_bring_their_own(self, run, tracker, group):
        lines = f"{group[0]}\trows=3 cents=+4\n{group[1]}\n{group[2]}\trows=10\n"
        assert run("ack", "-", stdin=lines).exit_code == 0
        assert self.totals(tracker, group) == ({"rows": 13, "cents": 4}, True)
        assert tracker.status(group.batch_id, exact=True).done_min == 3

    @pytest.mark.parametrize(
        ("total", "why"),
        [
            ("rows", "write NAME=NUMBER"),
            ("rows=1.5", "is not a whole number"),
            ("rows=9007199254740993", "from -9007199254740992 to 9007199254740992"),
            ("Rows=1", "write NAME=NUMBER"),
            ("=1", "write NAME=NUMBER"),
        ],
    )
    def test_what_is_not_a_total_is_wrong_usage(self, run, group, total, why):
        result = run("ack", group[0], "--total", total)
        assert result.exit_code == ExitCode.USAGE
        assert why in " ".join(result.stderr.split())

    def test_one_total_goes_with_one_item(self, run, group):
        for items in ([group[0], group[1]], ["-"]):
            assert run("ack", *items, "--total", "rows=1").exit_code == ExitCode.USAGE
        twice = run("ack", group[0], "--total", "rows=1", "--total", "rows=2")
        assert "named twice" in " ".join(twice.stderr.split())

    def test_lines_of_failures_bring_their_own_after_the_reason(self, run, tracker, group):
        lines = f"{group[0]}\ttorn\trows=3 cents=4\n{group[1]}\t\trows=10\n{group[2]}\n"
        assert run("fail", "-", "--reason", "lost", stdin=lines).exit_code == 0
        assert self.totals(tracker, group) == ({"rows": 13, "cents": 4}, True)
        reasons = [failure.reason for failure in tracker.failures(group.batch_id).failures]
        assert reasons == ["torn", "lost", "lost"]

    def test_who_fails_several_is_told_where_totals_go(self, run, tracker, group):
        assert run("fail", "-", stdin=f"{group[0]}\ttorn\trows=1.5\n").exit_code == ExitCode.USAGE
        assert tracker.status(group.batch_id, exact=True).done_min == 0
        said = " ".join(run("fail", group[0], group[1], "--total", "rows=1").stderr.split())
        assert "a tab, a reason, a tab and rows=812" in said.replace("│ ", "").replace(" │", "")

    def test_a_total_that_the_batch_does_not_have_is_refused(self, run, tracker, group):
        result = run("ack", group[0], "--total", "row=1")
        assert result.exit_code == ExitCode.USAGE
        assert "its totals are rows, cents" in " ".join(result.stderr.split())
        assert tracker.status(group.batch_id, exact=True).done_min == 0


def test_totals_are_opened_shown_and_summed_up(run, tracker):
    batch = int(run("open", "--total", "rows").stdout)
    group = tracker.add(batch, 8_000)
    assert run("ack", group[0], "--total", "rows=1200").exit_code == 0
    assert "total_rows\t0\n" in run("status", str(batch)).stdout
    assert "total_rows\t1200\n" in run("status", str(batch), "--exact").stdout
    assert run("status", str(batch), "--exact", "--json").document["totals"] == {"rows": 1200}
    assert "total_rows\t1200\n" in run("verify", str(batch)).stdout
    tracker.ack(group)
    tracker.close(batch)
    watched = run("watch", str(batch))
    assert "8,000 of 8,000, 1,200 rows, complete, " in watched.stderr


def test_a_range_as_missing_prints_it_can_be_failed(run, tracker, group):
    tracker.ack(group[:3])
    printed = run("missing", group.batch_id).stdout.splitlines()[1].split("\t")[2]
    assert run("fail", "--range", printed, "--reason", "lost").exit_code == 0
    assert [one.ordinal for one in tracker.iter_failures(group.batch_id)] == list(range(3, len(group)))
    assert run("fail", "--range", f"{group.prefix}:0..4000").exit_code == 2
