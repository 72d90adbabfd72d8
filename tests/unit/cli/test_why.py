"""fanin why."""

from __future__ import annotations

from fanin import SentItems


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


def test_of_an_unknown_batch_it_fails(run):
    assert run("why", 5).exit_code != 0


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
