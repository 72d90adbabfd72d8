"""Commands that read batches."""

import csv
import json

import pytest

from fanin import SentItems, Tracker
from fanin.cli.exits import ExitCode
from fanin.domain.batch import State
from fanin.domain.targets import TargetState
from fanin.testing import InMemoryService


def test_status_says_how_far(run, tracker, group):
    tracker.ack(group[:4])
    assert "done\t4\n" in run("status", group.batch_id, "--exact").stdout
    found = run("status", group.batch_id, "--exact", "--json").document
    assert (found["done_min"], found["done_max"], found["items"]) == (4, 4, 10)


def test_status_says_about_what_it_has_cost(run, tracker, group):
    tracker.ack(group)
    cost = run("status", group.batch_id, "--json").document["cost"]
    assert cost["at_least"] < cost["dollars"] < cost["at_most"]
    assert cost["estimate"] is True
    assert f"cost\t{cost['dollars']:.6f}\n" in run("status", group.batch_id).stdout


def test_results_are_lines_of_json_or_a_table(run, tracker):
    with tracker.batch(results=True) as batch:
        items = [one.item for one in batch.add(keys=["a", "b"])] + list(batch.add(1))
    tracker.ack(items[0], result={"price": 8, "name": "Grün, 1"})
    tracker.ack(items[2], result=5)
    lines = run("results", batch.id).stdout.splitlines()
    assert list(map(json.loads, lines)) == [
        {"ordinal": 0, "item": items[0], "key": "a", "result": {"price": 8, "name": "Grün, 1"}},
        {"ordinal": 2, "item": items[2], "key": "", "result": 5},
    ]
    table = list(csv.reader(run("results", batch.id, "--format", "csv").stdout.splitlines()))
    assert table[0] == ["ordinal", "item", "key", "result"]
    assert (table[1][2], table[2][2]) == ("a", "")
    assert json.loads(table[1][3]) == {"price": 8, "name": "Grün, 1"}


def test_a_missing_range_is_shown_as_ack_takes_it(run, tracker):
    with tracker.batch() as batch:
        group = batch.add(9)
    tracker.ack([group[0], group[1], group[5]])
    shown = run("missing", batch.id).stdout
    ranges = [word for word in shown.split() if ":" in word]
    assert ("2..5" in shown, "6..9" in shown, len(ranges)) == (True, True, 2)
    run("ack", "--range", ranges[0])
    assert [(found.start, found.stop) for found in tracker.missing(batch.id).ranges] == [(6, 9)]
    run("ack", "--range", ranges[1])
    nothing = run("missing", batch.id, "--all")
    assert (nothing.stdout, nothing.stderr) == ("ordinals\titems\trange\n", "nothing is missing\n")


def test_what_is_piped_is_not_cut(run, tracker, group):
    tracker.fail(group[0], "a reason " * 50)
    shown = run("failures", group.batch_id).stdout
    assert group[0] in shown
    assert ("a reason " * 50).strip() in shown


def test_no_failures(run, group):
    assert run("failures", group.batch_id).stderr == "nothing failed\n"
    assert run("failures", group.batch_id, "--all", "--json").document == {"failures": [], "cursor": None}


def test_verify_exits_with_1_where_something_disagrees(run, tracker, group):
    # Given: a batch whose items are done and that nobody completed
    batches = tracker.ledger.ports.batches
    tracker.ack(group)
    batches.close(group.batch_id, now=0)
    result = run("verify", group.batch_id)
    assert (result.exit_code, "left as it is" in result.stdout) == (ExitCode.WRONG, True)
    assert run("verify", group.batch_id, "--repair", "--json").document["repaired"]
    sound = run("verify", group.batch_id)
    assert (sound.exit_code, "all agrees" in sound.stdout) == (0, True)
    assert tracker.status(group.batch_id).batch.state is State.COMPLETE


def test_failures_are_counted_by_error_and_their_messages_shown(run, tracker, group):
    tracker.fail(group[:2], "row 7 is torn", message="the body")
    tracker.fail(group[2], "lost")

    found = run("failures", group.batch_id, "--by-error", "--json").document["errors"]
    assert [(one["error"], one["failed"], one["kept"]) for one in found] == [
        ("row <n> is torn", 2, 2),
        ("lost", 1, 0),
    ]
    assert run("failures", group.batch_id, "--message", group[1]).stdout.strip() == "the body"
    assert run("failures", group.batch_id, "--message", "0", "--json").document["message"]["body"] == (
        "the body"
    )


def test_a_message_that_was_not_kept_exits_with_1(run, tracker, group):
    tracker.fail(group[2], "lost")
    assert run("failures", group.batch_id, "--message", group[2]).exit_code == ExitCode.WRONG


TOKEN = "t" * 40 + "abcd"


@pytest.fixture
def tracker(service: InMemoryService) -> Tracker:
    """The command line's, with functions that call targets back."""
    return service.tracker


def test_a_batch_is_opened_with_targets_and_shows_them_masked(run, tracker):
    opened = run(
        "open", "--on-end", f"step_functions={TOKEN}", "--on-end", "failed:webhook=https://a.example/s?k=v"
    )
    assert opened.exit_code == 0, opened.stderr

    shown = run("targets", opened.stdout.strip())

    assert shown.exit_code == 0
    assert "…abcd" in shown.stdout
    assert "https://a.example/…" in shown.stdout
    assert TOKEN not in shown.stdout
    assert "s?k=v" not in shown.stdout


def test_a_parked_target_is_an_exit_code_and_is_told_again_on_request(run, tracker, service):
    # Given a batch whose target refuses
    refusing = service._runtime.memory.callbacks.refusing
    refusing.add(TOKEN)
    batch = tracker.open(on_end=[{"type": "step_functions", "task_token": TOKEN}])
    tracker.close(batch.batch_id)
    assert run("targets", batch.batch_id).exit_code == ExitCode.WRONG
    refusing.clear()
    assert run("targets", batch.batch_id, "--redeliver").exit_code == 0
    assert [target.state for target in tracker.targets(batch.batch_id)] == [TargetState.DELIVERED]


@pytest.mark.parametrize("bad", ["sqs", "pager=x", "later:sqs=https://q", "sqs="])
def test_what_is_not_a_target_is_refused(run, tracker, bad):
    result = run("open", "--on-end", bad)
    assert result.exit_code == ExitCode.USAGE
    assert "TYPE=WHERE" in result.stderr
    assert tracker.list(State.OPEN).batches == ()


def test_a_fan_out_calls_back(run, tracker, service, tmp_path):
    queue, then = service.queue("work"), service.queue("then", channel=True)
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"a":1}\n')
    result = run("fanout", rows, "--queue", queue, "--on-end", f"complete:sqs={then}", "--json")
    assert result.exit_code == 0, result.stderr
    (target,) = tracker.targets(result.document["batch_id"])
    assert (target.to, target.when.value) == ("then", "complete")


def test_a_batch_without_targets_says_so(run, tracker):
    batch = tracker.open()

    shown = run("targets", str(batch.batch_id))

    assert (shown.exit_code, "opened without --on-end" in shown.stderr) == (0, True)


def test_it_says_the_reason_what_to_do_and_what_is_missing(run, tracker):
    group = tracker.add(tracker.open().batch_id, 10)
    tracker.note_sent(group.batch_id, SentItems("https://sqs/1/work", 0, 7))
    tracker.ack(group[:4])

    shown = run("why", group.batch_id).stdout

    assert f"batch {group.batch_id} is open: 4 of 10 items are done" in shown
    assert "info: The batch is still open (open_not_closed)" in shown
    assert "→ Close it once everything is added" in shown
    assert "  4..7  unknown: " in shown
    assert "  7..10  never_sent: no note says that these items were sent" in shown


def test_as_json_it_is_the_answer_of_the_api(run, tracker):
    group = tracker.add(tracker.open().batch_id, 10)

    found = run("why", group.batch_id, "--json").document

    assert (found["batch_id"], found["done_min"], found["done_max"]) == (group.batch_id, 0, 0)
    assert found["findings"][0]["severity"] == "info"
    assert found["missing"][0]["to"] == 10


def test_of_more_than_it_shows_it_says_where_the_rest_is(run, tracker):
    group = tracker.add(tracker.open().batch_id, 10**6)

    shown = run("why", group.batch_id).stdout

    assert f"there may be more: fanin missing {group.batch_id}" in shown
    assert "0 to 998,272 of 1,000,000 items" in shown  # it has seen 27 words of missing items


def test_what_needs_a_person_has_the_command_that_helps(run, tracker):
    assert run("attention").exit_code == 0
    with tracker.batch(user_key="prices") as batch:
        tracker.fail(batch.add(1)[0], "no price")

    found = run("attention")

    assert found.stdout.splitlines()[1:] == [
        f"{batch.id}\t1 failed item, not redriven\tprices\tfanin redrive {batch.id}"
    ]
    assert (found.stderr, found.exit_code) == ("failed: 1\n", 1)
    assert run("attention", "--json", "--all").document["counts"] == {"failed": 1}
