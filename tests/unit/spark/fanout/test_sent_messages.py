"""Which messages were sent, as several runs of a fan-out note it in one folder."""

from __future__ import annotations

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.fanout.folder import SentMessages
from fanin.spark.runtime.files import Folder
from tests.unit.spark.runtime.file_systems import FileSystem


@pytest.fixture
def system() -> FileSystem:
    return FileSystem()


@pytest.fixture
def messages(system: FileSystem) -> SentMessages:
    return SentMessages(Folder(system.session(), "/folder"), 7)


def test_the_results_of_the_first_run_that_ends_count(messages: SentMessages) -> None:
    first, second = messages.new(), messages.new()
    assert first != second
    assert messages.results() is None
    messages.finish(second)
    messages.finish(first)
    assert messages.results() == second


def test_messages_may_have_been_sent_once_a_run_began(system: FileSystem, messages: SentMessages) -> None:
    other = SentMessages(Folder(system.session(), "/folder"), 77)
    assert not messages.began()
    messages.begin()
    assert (messages.began(), other.began()) == (True, False)


@pytest.mark.parametrize("damaged", ["", '{"results": "sent', "[]", "{}"])
def test_a_note_of_results_that_is_damaged_is_named_with_what_to_do(
    system: FileSystem, messages: SentMessages, damaged: str
) -> None:
    system.files["/folder/sent-7.json"] = damaged.encode()
    with pytest.raises(InvalidRequest, match=r"/folder/sent-7\.json is damaged.* start again"):
        messages.results()
