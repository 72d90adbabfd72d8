"""Reads the dead-letter queues of tracked queues: fails the items of the messages, so that batches end."""

from typing import Any

from fanin.app.failures import last_attempts, sent_queues
from fanin.entry import queues, wiring
from fanin.entry.observe import observed
from fanin.entry.unhandled import respond


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    messages, ports, graves = event["Records"], wiring.ledger().ports, wiring.dead_letter_queues()
    buffers = wiring.settings().buffer_dead_letters_arn
    handled = queues.fail_dead_letters(
        messages,
        wiring.ledger(),
        kept_from=buffers,
        keep=graves.keep,
        source_of=graves.source_of,
        last_attempts=lambda items: last_attempts(ports, items),
        sent_queues=lambda items: sent_queues(ports, items),
    )
    keep = [message for message in messages if buffers and message["eventSourceARN"] == buffers]
    return respond(handled, wiring.set_aside, wiring.received().postpone, keep=keep)
