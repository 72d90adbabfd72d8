"""Queues of items whose messages died, from notes of what was sent, where nothing else names them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fanin.app.diagnosis.last_attempts import by_batch
from fanin.app.ports import Ports
from fanin.errors import FaninError

_SENT: Final = 16
"""Notes of what was sent that are read for one batch; most batches have one for each of their queues."""


def sent_queues(ports: Ports, items: Iterable[str]) -> dict[str, str]:
    """The queues to which the messages of some items were sent.

    Args:
        ports: the stores.
        items: ids; malformed ones have no queue.

    Returns:
        Item id → URL or ARN. Left out are items without a note, those that were sent to several queues, and
        all of a batch whose notes cannot be read now: then a redrive must name the queue.
    """
    found: dict[str, str] = {}
    for batch_id, ordinals in by_batch(items).items():
        try:
            sent, more = ports.parts.sent(batch_id, upto=max(ordinals.values()), limit=_SENT)
        except FaninError:
            continue
        for item, ordinal in ordinals.items():
            queues = {row.queue for row in sent if row.start <= ordinal < row.stop}
            if len(queues) == 1 and not more:
                found[item] = queues.pop()
    return found
