"""Arguments and options that several commands share behave alike in each of them."""

import pytest

from fanin.cli.exits import ExitCode

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
