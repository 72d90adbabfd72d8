"""The last attempts at items whose messages died: why they failed, and in which queue."""

from collections.abc import Iterable
from contextlib import suppress

from fanin.app.ports import Ports
from fanin.app.ports.parts import RetryRow
from fanin.domain import ids
from fanin.errors import FaninError


def last_attempts(ports: Ports, items: Iterable[str]) -> dict[str, RetryRow]:
    """The last attempts at items, as they were noted.

    Args:
        ports: the stores.
        items: ids; those that are malformed have no note.

    Returns:
        Item id → note; items without a note are left out. Empty if the notes cannot be read now: an item
        fails with less of a reason rather than not at all.
    """
    found: dict[str, RetryRow] = {}
    for batch_id, ordinals in by_batch(items).items():
        with suppress(FaninError):
            rows = ports.parts.retries(batch_id, ordinals.values())
            found |= {item: rows[ordinal] for item, ordinal in ordinals.items() if ordinal in rows}
    return found


def by_batch(items: Iterable[str]) -> dict[int, dict[str, int]]:
    """The ordinals of items, by batch and id; malformed ids are left out."""
    named: dict[int, dict[str, int]] = {}
    for item in items:
        with suppress(FaninError):
            block, ordinal = ids.parse_item(item)
            named.setdefault(block.batch_id, {})[item] = ordinal
    return named


_SENT = 16
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
        with suppress(FaninError):
            sent, more = ports.parts.sent(batch_id, upto=max(ordinals.values()), limit=_SENT)
            for item, ordinal in ordinals.items():
                queues = {row.queue for row in sent if row.start <= ordinal < row.stop}
                if len(queues) == 1 and not more:
                    found[item] = queues.pop()
    return found
