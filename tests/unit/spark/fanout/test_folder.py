"""What a folder tells: whose it is, how another input differs, and which messages were sent."""

from typing import Any

import pytest

from fanin.domain.batch import OpenBatch
from fanin.errors import InvalidRequest
from fanin.spark.fanout.folder import (
    SentMessages,
    check_key,
    note_batch,
    noted_batch,
    other_input,
    what_to_do,
)
from fanin.spark.runtime.files import Folder
from tests.unit.spark.runtime.file_systems import FileSystem

ROWS = {"path": "rows.csv", "format": "csv", "body": None, "schema": None, "multiline": False}
AGAIN = {"retry_of": 7, "staging": "/first", "pending": False}


class Files:
    """A folder whose files are in memory."""

    path = "/staging"

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def read(self, name: str) -> str | None:
        return self._texts.get(name)

    def write(self, name: str, text: str) -> None:
        self._texts[name] = text


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (
            {**ROWS, "queue": "https://sqs/wrk"},
            {**ROWS, "queue": "https://sqs/work"},
            "another input: queue was 'https://sqs/wrk', and is now 'https://sqs/work'. To send",
        ),
        (
            ROWS,
            {**ROWS, "path": "other.csv", "body": "text"},
            "path was 'rows.csv', and is now 'other.csv'; ",
        ),
        (ROWS, {**ROWS, "delimiter": ";"}, "delimiter was None, and is now ';'. To send"),
        (AGAIN, {**AGAIN, "retry_of": 8}, "retry_of was 7, and is now 8. To send"),
        (ROWS, {**ROWS, "schema": "x" * 999}, f"is now '{'x' * 299}. To send"),
    ],
)
def test_it_names_what_differs_and_nothing_else(was, now, told):
    said = str(other_input(Files(), was, now))
    assert said.startswith("/staging holds the staging of another input: ")
    assert told in said
    assert said.count(" was ") == sum(was.get(name) != now[name] for name in now)


def test_the_folder_of_the_rows_to_send_again_is_never_said_to_be_deleted():
    said = str(other_input(Files(), ROWS, {**AGAIN, "staging": "/staging/"}))
    assert "Keep it, and name a new folder with --staging" in said
    assert "delete" not in said


def test_it_names_the_batch_that_was_opened_if_that_is_known(stack):
    # Given a folder from which no batch was opened yet
    files: Any = Files()
    assert noted_batch(files) is None
    assert "Batch" not in what_to_do(files)
    # When one is
    batch = stack.ledger().open(OpenBatch())
    note_batch(files, batch, "nightly")
    # Then people learn how to see and how to end it
    assert noted_batch(files) == batch.batch_id
    assert f"Batch {batch.batch_id} was opened from it" in what_to_do(files)
    assert f"`fanin cancel {batch.batch_id}` ends it" in what_to_do(files)


def test_another_key_than_that_of_the_batch_is_refused(stack):
    # Given a folder whose batch has a key
    files: Any = Files()
    ledger = stack.ledger()
    check_key(files, "nightly", ledger)
    batch = ledger.open(OpenBatch())
    note_batch(files, batch, "nightly")
    check_key(files, "nightly", ledger)
    # Then no other key is taken, which would open a second batch of the same rows
    with pytest.raises(InvalidRequest, match=r"the key 'nightly', and the key is now 'daily'.*`fanin cancel"):
        check_key(files, "daily", ledger)


@pytest.mark.parametrize(
    ("items", "removed", "taken"), [(0, False, True), (3, False, False), (0, True, False)]
)
def test_rows_of_a_batch_that_ended_before_it_got_them_are_sent_under_another_key(
    stack, items, removed, taken
):
    # Given a batch that was cancelled, with items or without
    files: Any = Files()
    ledger = stack.ledger()
    batch = ledger.open(OpenBatch())
    note_batch(files, batch, "nightly")
    if items:
        ledger.add(batch.batch_id, items)
    ledger.cancel(batch.batch_id)
    if removed:
        ledger.remove(batch.batch_id)
    # When its rows are to be sent under another key, then only if none can have been sent
    if taken:
        check_key(files, "daily", ledger)
    else:
        with pytest.raises(InvalidRequest, match="the key 'nightly'"):
            check_key(files, "daily", ledger)


@pytest.mark.parametrize("damaged", ["", '{"batch_id": 2', "[]", "{}", '{"batch_id": null}'])
def test_a_note_of_the_batch_that_is_damaged_counts_as_none(damaged):
    # The next run of the fan-out writes it anew
    files: Any = Files()
    files.write("batch.json", damaged)
    assert noted_batch(files) is None
    assert "was opened" not in what_to_do(files)


def test_nobody_is_told_to_delete_rows_that_only_this_folder_can_send():
    # Given a redrive that has taken rows, and died before or after it opened its batch
    files: Any = Files()
    for _ in range(2):
        told = str(other_input(files, AGAIN, {**AGAIN, "pending": True}))
        assert "name another folder" in told
        assert "no other redrive sends" in told
        assert "delete" not in told
        files.write("batch.json", '{"batch_id": 5}')
    assert "Batch 5 was opened from it" in told


@pytest.fixture
def system() -> FileSystem:
    return FileSystem()


@pytest.fixture
def messages(system: FileSystem) -> SentMessages:
    return SentMessages(Folder(system.session(), "/folder"), 7)


def test_the_results_of_the_first_run_that_ends_count(messages):
    first, second = messages.new(), messages.new()
    assert first != second
    assert messages.results() is None
    messages.finish(second)
    messages.finish(first)
    assert messages.results() == second


def test_messages_may_have_been_sent_once_a_run_began(system, messages):
    other = SentMessages(Folder(system.session(), "/folder"), 77)
    assert not messages.began()
    messages.begin()
    assert (messages.began(), other.began()) == (True, False)


@pytest.mark.parametrize("damaged", ["", '{"results": "sent', "[]", "{}"])
def test_a_note_of_results_that_is_damaged_is_named_with_what_to_do(system, messages, damaged):
    system.files["/folder/sent-7.json"] = damaged.encode()
    with pytest.raises(InvalidRequest, match=r"/folder/sent-7\.json is damaged.* start again"):
        messages.results()
