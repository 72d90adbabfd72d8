"""A producer that goes on under its key while somebody ends its batch, at each access to a store."""

from itertools import count

from fanin.domain.batch import LIVE, State
from fanin.errors import BatchClosed
from fanin.testing import InMemoryService

BLOCKS = 5


def test_only_the_blocks_in_hand_are_sent_into_a_batch_that_has_ended():
    seen = set[bool]()
    for moment in count():
        resumed = Resumed(moment)
        raised = resumed.send()
        assert len(resumed.sent_after) <= 2  # one is sent, and the next is ready
        assert raised or len(resumed.sent) == BLOCKS
        seen.add(raised)
        if not resumed.ended:
            break
    assert seen == {True, False}
    assert moment > 2 * BLOCKS


class Resumed:
    """A producer that died when it had added its items, and goes on.

    Args:
        moment: the access before which its batch is cancelled.
    """

    def __init__(self, moment: int) -> None:
        self.service = InMemoryService()
        self.batch_id = self.service.tracker.open(key="import 7").batch_id
        for block in range(BLOCKS):
            self.service.tracker.add(self.batch_id, 2, key=f"rows\0{block}")
        self.queue = self.service.queue()
        self.left = moment
        self.ended = False
        self.sent: list[str] = []
        self.sent_after: list[str] = []

    def send(self) -> bool:
        """Send everything; whether it was refused."""
        self.service.on_call = self.on_call
        try:
            with self.service.tracker.batch(key="import 7", on_error="leave") as batch:
                batch.send(self.queue, list("abcdefghij"), block=2, key="rows", workers=1)
        except BatchClosed:
            return True
        finally:
            self.service.on_call = None
        return False

    def on_call(self, call: str, moment: str) -> None:
        if moment != "before":
            return
        self.left -= 1
        if self.left < 0 and not self.ended:
            self.ended = True
            batches, now = self.service._runtime.memory.batches, self.service.clock.now()
            batches.end(self.batch_id, State.CANCELLED, now=now, sources=LIVE)
        if call == "sqs.send_message_batch":
            self.sent.append(call)
            self.sent_after += [call] * self.ended
