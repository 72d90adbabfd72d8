"""What a folder tells of its fan-out: the batch that was opened from it, and which messages were sent.

Spark cannot write a dataset twice at the same time: the run that commits first deletes what the other one has
written. So each run writes its results under a name of its own, and a note says whose count.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any, Final

from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import Batch
from fanin.errors import GONE, InvalidRequest
from fanin.spark.runtime.files import Folder

_NOTE: Final = "batch.json"


def note_batch(files: Folder, batch: Batch, key: str) -> None:
    """Note in the folder of a fan-out which batch was opened from it, and under which idempotency key."""
    files.write(_NOTE, json.dumps({"batch_id": batch.batch_id, "key": key}))


def noted_batch(files: Folder) -> int | None:
    """The batch that was opened from a folder; None if its note is missing, or damaged until the next run."""
    return _noted(files).get("batch_id")


def check_key(files: Folder, key: str, ledger: LedgerService, *, taken: bool = False) -> None:
    """Refuse a key other than that of the folder's batch: it would send all rows again, as other items.

    If that batch ended before it got any items, none of its rows was sent, and another key sends them.
    """
    noted = _noted(files)
    before = noted.get("key", key)
    if before != key and not _ended_empty(ledger, noted["batch_id"]):
        raise InvalidRequest(
            f"{files.path} belongs to the batch with the key {before!r:.300}, and the key is now"
            f" {key!r:.300}. To go on with that batch, leave --key as it was (its default is made of the"
            f" staging). {what_to_do(files, taken=taken)}"
        )


def _ended_empty(ledger: LedgerService, batch_id: int) -> bool:
    try:
        batch = ledger.refresh([batch_id])[batch_id]
    except GONE:
        return False  # nobody knows
    return batch.state.terminal and not batch.items


def _noted(files: Folder) -> dict[str, Any]:
    try:
        found = json.loads(files.read(_NOTE) or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("batch_id"), int) else {}


def other_input(files: Folder, was: Mapping[str, Any], now: Mapping[str, Any]) -> InvalidRequest:
    """The refusal of a folder that holds the staging of another input than the one that is wanted now."""
    source = now.get("staging")
    if isinstance(source, str) and source.rstrip("/") == files.path.rstrip("/"):
        return InvalidRequest(
            f"{files.path} is the folder of --failed-from, whose rows are to be sent again. Keep it, and"
            " name a new folder with --staging"
        )
    told = "; ".join(
        f"{name} was {was.get(name)!r:.300}, and is now {now.get(name)!r:.300}"
        for name in {**was, **now}
        if was.get(name) != now.get(name)
    )
    do = what_to_do(files, taken="retry_of" in was)
    return InvalidRequest(f"{files.path} holds the staging of another input: {told}. {do}")


def what_to_do(files: Folder, *, taken: bool = False) -> str:
    """What to do with a folder of another fan-out; it may hold failed rows that nobody else sends."""
    do = "To send this input, name another folder" + (
        ", and keep this one: it may hold failed rows that no other redrive sends."
        if taken
        else ", or delete this one if its batch has ended."
    )
    if (batch_id := noted_batch(files)) is None:
        return do
    return (
        f"{do} Batch {batch_id} was opened from it: `fanin status {batch_id}` shows it, and"
        f" `fanin cancel {batch_id}` ends it"
    )


class SentMessages:
    """What the folder of a fan-out tells of the messages of its batch."""

    def __init__(self, files: Folder, batch_id: int) -> None:
        self._files = files
        self._name, self._began = f"sent-{batch_id}", f"sending-{batch_id}"
        self._note = f"{self._name}.json"

    def begin(self) -> None:
        """Note that messages may be sent from now on.

        Call it before the first is, and read the state of the batch afterwards: nothing may be sent if that
        has ended. Then whoever finds the batch ended, and afterwards no such note, knows that none was sent.
        """
        self._files.write(self._began, "messages may be sent\n")

    def began(self) -> bool:
        return self._files.there(self._began)

    def new(self) -> str:
        return f"{self._name}-{uuid.uuid4().hex}"

    def finish(self, results: str) -> None:
        """Note that results are whole; those of the first run that says so count."""
        self._files.write(self._note, json.dumps({"results": results}), replace=False)

    @property
    def again(self) -> str:
        return (
            f"Put {self._files.at(self._note)} and what it names back from a copy, or move this one file"
            " away and start again. Unless the batch is closed, that sends what is not known to be sent"
        )

    def results(self) -> str | None:
        """The name of the results that count; None if no run has sent all messages."""
        if (text := self._files.read(self._note)) is None:
            return None
        try:
            return str(json.loads(text)["results"])
        except (ValueError, LookupError, TypeError):
            why = f"{self._files.at(self._note)} is damaged, so nobody can tell which results count"
            raise InvalidRequest(f"{why}. {self.again}") from None
