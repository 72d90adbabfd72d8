"""Which messages of a batch were sent, as the folder of a fan-out knows it.

Spark cannot write a dataset twice at the same time: the run that commits first deletes what the other one has
written. So each run writes its results under a name of its own, and a note says whose count.
"""

from __future__ import annotations

import json
import uuid

from fanin.errors import InvalidRequest
from fanin.spark.runtime.files import Folder


class SentMessages:
    """What is known of the messages of one batch.

    Args:
        files: the folder of the fan-out.
        batch_id: its batch.
    """

    def __init__(self, files: Folder, batch_id: int) -> None:
        self._files = files
        self._name = f"sent-{batch_id}"
        self._began = f"sending-{batch_id}"

    def begin(self) -> None:
        """Note that messages may be sent from now on.

        Call it before the first is, and read the state of the batch afterwards: nothing may be sent if that
        has ended. Then whoever finds the batch ended, and afterwards no such note, knows that none was sent.
        """
        self._files.write(self._began, "messages may be sent\n")

    def began(self) -> bool:
        """Whether messages may have been sent."""
        return self._files.there(self._began)

    def new(self) -> str:
        """A name for the results of a run."""
        return f"{self._name}-{uuid.uuid4().hex}"

    def finish(self, results: str) -> None:
        """Note that results are whole; those of the first run that says so count."""
        self._files.write(f"{self._name}.json", json.dumps({"results": results}), replace=False)

    @property
    def again(self) -> str:
        """What to do when the results are damaged."""
        return (
            f"Put {self._files.at(self._name)}.json and what it names back from a copy, or move this one file"
            " away and start again. Unless the batch is closed, that sends what is not known to be sent"
        )

    def results(self) -> str | None:
        """The name of the results that count; None if no run has sent all messages.

        Raises:
            InvalidRequest: the note that names them is damaged; says what to do.
        """
        note = f"{self._name}.json"
        if (text := self._files.read(note)) is None:
            return None
        try:
            return str(json.loads(text)["results"])
        except (ValueError, LookupError, TypeError):
            raise InvalidRequest(
                f"{self._files.at(note)} is damaged, so nobody can tell which results count. {self.again}"
            ) from None
