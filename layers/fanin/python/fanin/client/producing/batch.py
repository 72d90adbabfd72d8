"""A batch as its producer uses it: add items, send their messages, close."""

import itertools
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, overload

from fanin import errors
from fanin.adapters.backoff import Backoff
from fanin.client.conversions import Duration
from fanin.client.ledger import LedgerCalls
from fanin.client.messages import Attribute, Message, Sendable, size_in_utf8
from fanin.client.producing.resuming import DoneBefore, Stop
from fanin.client.producing.sender import SEND_WAITS, NoteSent, Sender, SentNotes
from fanin.client.sqs import REQUEST_BYTES, SQSClient
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, CloseWhen, State
from fanin.domain.failures import KeptMessage
from fanin.domain.ids import MAX_COUNT, MAX_KEYS, Group, ItemKey, KeyedItem, checked_key, payload_digest
from fanin.domain.limits import chunks
from fanin.domain.marks import Failure, Receipt
from fanin.domain.reports import Progress
from fanin.domain.tree import runs

logger = logging.getLogger("fanin")

_BLOCK: Final = 10_000
_BLOCK_BYTES: Final = 64 * 2**20
_MAX_KEY: Final = 100  # characters; the number of the block is added
_OURS: Final = "\0"  # in the keys that are made here, so that they are no key of a caller's
_PATIENCE: Final = 8  # how often in a row a throttled addition of items is repeated


class TrackedBatch:
    """Adds items to one batch and sends their messages; ``tracker.batch`` and ``tracker.attach`` make one.

    ::

        with tracker.batch(user_key="catalog-42") as batch:
            batch.send(queue_url, rows)

    Args:
        ledger: the ledger's calls, a ``Tracker``.
        row: the batch.
        sqs: makes the client that messages are sent with.
        backoff: waits while the batch is full, or the ledger throttles.
        note: notes what was sent, for ``why``; None notes nothing. It does not raise.
        resumable: whether another run may make the same calls in the same order, after this one broke off.
            Then additions have the same keys in each run, and so the same items; and nothing is sent for a
            batch that an earlier run has closed.
        item: the pending item of the batch whose handler adds; None if anybody else does. Its additions have
            the same keys in each run, too, and what a note says was sent is not sent again.

    Attributes:
        id: the batch id.
        row: the batch as it was when this object was made, or when it was last closed or cancelled here.
    """

    def __init__(
        self,
        ledger: LedgerCalls,
        row: Batch,
        sqs: Callable[[], SQSClient],
        *,
        backoff: Backoff | None = None,
        note: NoteSent | None = None,
        resumable: bool = False,
        item: str | None = None,
    ) -> None:
        self._note = note
        self._item = item
        self._additions = itertools.count() if resumable or item else None
        self._added = 0
        self._ledger = ledger
        self._make_sqs = sqs
        self._backoff = backoff or Backoff(base=0.5, cap=20.0, sleep=ledger.clock.sleep)
        self.row = row

    @property
    def id(self) -> int:
        return self.row.batch_id

    def __repr__(self) -> str:
        return f"TrackedBatch({self.id}, {self.row.state.value})"

    @overload
    def add(self, count: int, *, key: str | None = None) -> Group: ...
    @overload
    def add(self, *, keys: Iterable[str | ItemKey]) -> list[KeyedItem]: ...
    def add(
        self, count: int | None = None, *, keys: Iterable[str | ItemKey] | None = None, key: str | None = None
    ) -> Group | list[KeyedItem]:
        """Add items, for messages that you send yourself; see ``Tracker.add``.

        Returns:
            The ids of the items, a sequence; of keys, their items. Each goes with one message.
        """
        if keys is not None:
            keyed = self._ledger.add(self.id, keys=keys, item=self._item)
            self._added += len({one.item for one in keyed})
            return keyed
        if count is None:
            raise errors.InvalidRequest("say how many items to add, or give their keys")
        key = self._next_key() if key is None else key
        group = self._ledger.add(self.id, count, item=self._item, key=key)
        self._added += count
        return group

    def _next_key(self) -> str | None:
        """The idempotency key of the next addition, the same in each run; None if nobody resumes it."""
        return None if self._additions is None else f"{_OURS}{next(self._additions)}"

    def send(
        self,
        queue_url: str,
        messages: Iterable[Sendable],
        *,
        attributes: Mapping[str, Attribute] | None = None,
        workers: int = 8,
        block: int = _BLOCK,
        request_bytes: int = REQUEST_BYTES,
        progress: Callable[[int], None] | None = None,
        key: str | None = None,
        refused: Callable[[list[Failure]], object] | None = None,
        stop: Stop | None = None,
        fair: bool = False,
        keys: Callable[[Any], str] | None = None,
    ) -> int:
        """Add an item for each message, put its id on the message, and send the messages.

        Messages are read as fast as they are sent, at most one block ahead: 10,000 messages, or 64 MB of
        bodies as they are sent. Items are added block by block, each under an idempotency key. If the batch
        has a limit, a block is a quarter of it, and this call waits while the batch is full: back-pressure.
        It stops waiting once messages that the queue refused keep so much of the batch that there can be no
        room.

        Args:
            queue_url: the SQS queue, standard or FIFO.
            messages: texts, objects (sent as JSON), or ``Message``; also an endless stream.
            attributes: message attributes of every message; those of a ``Message`` take precedence.
            workers: how many requests are sent at a time; always one on a FIFO queue, which keeps the order.
            block: most items that are added at a time.
            request_bytes: most bytes of one request; up to 1 MiB if the queue's MaximumMessageSize allows it.
            progress: called after each request with the number of messages it sent.
            key: idempotency key of this call, at most 100 characters. A producer that died calls it again
                with the same messages, in the same order, and the same ``block``: they get the same items,
                and are sent unless their items are done. So a message may be sent twice, and counts once.
            refused: gets what the queue did not accept, as failures with their messages, request by request.
                ``batch.fail`` fails these items and keeps their messages, for a redrive.
            stop: stops the call early, and lets a later one with the same ``key`` begin where it stopped.
            fair: on a standard queue, name the batch as the group of messages that name none: a large
                batch then does not keep the messages of others waiting (SQS's fair queues).
                Redrives keep the group.
            keys: gives the key of a message's item, such as ``lambda row: row["url"]``: text of 1 to 512
                bytes in UTF-8. One key is one item of the batch, by whoever, however often, so this call may
                be repeated without ``key``. A message is sent if its item is not done and was not added with
                another body, which is logged; in a handler, only if this item has added it. Items are added
                98 at a time.

        Returns:
            How many messages were sent, without those whose items were done before; 0 if an earlier delivery
            of the message that is handled has sent them all.

        Raises:
            InvalidRequest: ``messages`` is one message, or an argument is not what it should be; nothing was
                added. Or a message cannot be sent; those before its block were.
            SendFailed: the queue did not accept some messages; ``items`` says which and why, ``sent`` how
                many it accepted. All others were sent, unless there are ``unsent`` ones: messages that were
                read and not added, because those that were refused keep a bounded batch full.
            RequestTooLarge: a message is larger than ``request_bytes``.
            BatchClosed: the batch accepts no more items; or it has ended since an earlier run added them.
            AccessDenied, NotConfigured, ServiceUnavailable: the queue or the service cannot be reached.
        """
        if isinstance(messages, str | bytes | Mapping | Message):
            raise errors.InvalidRequest(
                f"messages must be several, not one {type(messages).__name__}; to send one, write [message]"
            )
        if keys is not None and not callable(keys):
            raise errors.InvalidRequest(
                f"keys must be a function of a message that gives its key, not {limits.shown(keys)}; write"
                ' such as keys=lambda row: row["url"]'
            )
        limits.whole("block", block, 1, MAX_COUNT)
        if self._additions is not None and self._item is None and self.row.state is not State.OPEN:
            return 0  # the earlier run that closed the batch has sent everything
        if key is None:
            key = self._next_key()
        else:
            limits.text("key", key, _MAX_KEY, least=1)
        sender = Sender(
            self._make_sqs(),
            queue_url,
            group_id=str(self.id),
            fair=fair,
            attributes=attributes,
            workers=workers,
            request_bytes=request_bytes,
            backoff=replace(SEND_WAITS, sleep=self._ledger.clock.sleep),
            keep=refused is not None,
        )
        size = block if self.row.limit is None else max(1, min(block, self.row.limit // 4))
        size = size if keys is None else min(size, MAX_KEYS)
        sent = 0
        unsent: list[Message] = []
        notes = SentNotes(self.id, queue_url, self._note or (lambda _batch, _sent: None))
        failed_here: set[str] = set()  # these give their room back

        def stuck() -> int:
            return len(sender.refused) - len(failed_here)

        blocks = self._blocks(messages, size, stuck, unsent, key, notes=notes, stop=stop or Stop(), keys=keys)
        for taken, failed in sender.send(blocks):
            sent += taken
            notes.answered(taken + len(failed), sender.refused)
            if refused is not None and failed:
                kept = ((item, why, sender.take_refused(item)) for item, why in failed.items())
                refused([Failure(item, f"not sent: {why}", its, source=queue_url) for item, why, its in kept])
                failed_here |= failed.keys()
            if progress is not None:
                progress(taken)
        if sender.refused:
            raise _send_failed(queue_url, sent, sender.refused, unsent)
        return sent

    def _blocks(
        self,
        messages: Iterable[Sendable],
        size: int,
        stuck: Callable[[], int],
        unsent: list[Message],
        key: str | None,
        *,
        notes: SentNotes,
        stop: Stop,
        keys: Callable[[Any], str] | None,
    ) -> Iterator[Iterable[tuple[str, Message]]]:
        """Add items for the messages, block by block; if there can be no room, the rest is ``unsent``."""
        stream = (_weighed(one, None if keys is None else keys(one)) for one in messages)
        resumes = key is not None and self._item is None and keys is None
        done = DoneBefore(self._ledger, self._ledger.status(self.id).batch) if resumes else None
        blocks = chunks(stream, max_items=size, size_of=lambda one: one.size, max_bytes=_BLOCK_BYTES)
        first = 0
        for number, block in enumerate(blocks):
            block_key = uuid.uuid4().hex if key is None else f"{key}{_OURS}{number}"
            named = None if keys is None else [_item_key(one) for one in block]
            added = self._admitted(len(block), stuck, block_key, stop, named)
            if added is None:
                unsent += [] if stop.asked else [one.message for one in block]
                return
            if isinstance(added, Group):
                if done is not None and done.added(added):
                    self._check_that_it_lives()
                items = [(item, added.sent or (done is not None and item in done)) for item in added]
            else:
                items = [(one.item, not one.send) for one in added]
                _warn_of_others(self.id, added)
            entries = [
                ((item, one.message), settled or stop.skipped(n))
                for n, (one, (item, settled)) in enumerate(zip(block, items, strict=True), first)
            ]
            if isinstance(added, Group):
                all_of = ids.parse_prefix(added.prefix)
                notes.begin(all_of.first, all_of.stop, sum(not settled for _, settled in entries))
            else:
                sent = (ids.parse_item(item)[1] for (item, _), settled in entries if not settled)
                for start, end in runs(sent):
                    notes.begin(start, end, end - start)
            yield stop.until(entries)
            first += len(block)

    def _check_that_it_lives(self) -> None:
        """Raise ``BatchClosed`` if the batch has ended without items that a key still gives."""
        row = self._ledger.ended.note(self._ledger.ledger.status(self.id, brief=True).batch)
        if row.state.terminal and (row.partial or row.state is not State.COMPLETE):
            raise errors.BatchClosed(
                f"since an earlier run added these items, batch {self.id} is {row.state} without all"
                " its items, so nobody waits for them; nothing was sent under them. Open another batch, with"
                " another key, and send the messages in it"
            )

    def _admitted(
        self, count: int, stuck: Callable[[], int], key: str, stop: Stop, keys: list[ItemKey] | None
    ) -> Group | list[KeyedItem] | None:
        """Add items, waiting while the batch is full; stops with ``BatchClosed`` when the batch ends.

        Returns:
            The items; None if the items of refused messages leave no room for so many, or if it is to stop.
        """
        attempt = throttled = 0
        sleep = self._backoff.sleep
        backoff = replace(self._backoff, sleep=lambda seconds: stop.wait(seconds, sleep))
        while True:
            if stop.asked:
                return None
            try:
                return self.add(count, key=key) if keys is None else self.add(keys=keys)
            except (errors.LimitReached, errors.Throttled) as busy:
                throttled = throttled + 1 if isinstance(busy, errors.Throttled) else 0
                if throttled > _PATIENCE:
                    raise
                if isinstance(busy, errors.LimitReached) and stuck() + count > (self.row.limit or 0):
                    return None
                backoff.wait(attempt, busy.retry_after)
                attempt += 1

    def fail(
        self,
        items: str | Failure | Iterable[str | Failure],
        reason: str = "",
        *,
        message: KeptMessage | str | None = None,
    ) -> list[Receipt]:
        """Mark items done as failed; see ``Tracker.fail``."""
        return self._ledger.fail(items, reason, message=message)

    def close(self, *, when: CloseWhen | str = CloseWhen.NOW) -> Batch:
        """Accept no more items; the batch completes when its last item is done.

        Args:
            when: ``drained`` lets the items of the batch add more until all are done; see ``Tracker.close``.

        Raises:
            IdempotencyKeyReused: an earlier run of the same handler added more items than this one has.
        """
        if self._additions is not None and self.row.state is State.OPEN and self._added < self.row.items:
            raise errors.IdempotencyKeyReused(
                f"an earlier run added {self.row.items} items to batch {self.id}, and this one only"
                f" {self._added}, so nobody would send the others: add the same items in each run"
            )
        self.row = self._ledger.close(self.id, when=when)
        return self.row

    def cancel(self) -> Batch:
        """End the batch now."""
        self.row = self._ledger.cancel(self.id)
        return self.row

    def status(self, *, exact: bool = False) -> Progress:
        """Read the batch and how far it is; see ``Tracker.status``."""
        return self._ledger.status(self.id, exact=exact)

    def wait(self, timeout: Duration | float | None = None) -> Progress:
        """Wait until the batch has ended; close it first, since an open batch never completes.

        Args:
            timeout: seconds, or a timedelta; None waits for as long as the batch lives.

        Raises:
            TimeoutError: the batch has not ended in time.
        """
        return self._ledger.wait(self.id, timeout)


class _Weighed(NamedTuple):
    """A message with its body as it is sent, so that it is written once; the bytes of that; and its key."""

    message: Message
    size: int
    key: str | None


def _weighed(sendable: Sendable, key: str | None) -> _Weighed:
    message = Message.of(sendable)
    text = message.text
    size = size_in_utf8(text)
    limits.sendable("a message", text)
    return _Weighed(replace(message, body=text), size, key)


def _item_key(one: _Weighed) -> ItemKey:
    return ItemKey(checked_key(one.key), payload_digest(one.message.text))


def _warn_of_others(batch_id: int, items: Sequence[KeyedItem]) -> None:
    """Tell that messages are not sent, because their items were added with others."""
    if others := [one.key for one in items if one.differs]:
        logger.warning(
            "batch %s: %d messages have another body than the one with which their key was added; the first"
            " stays. The first of these keys: %r",
            batch_id,
            len(others),
            others[0],
        )


def _send_failed(
    queue_url: str, sent: int, refused: Mapping[str, str], unsent: Sequence[Message]
) -> errors.SendFailed:
    item, reason = next(iter(refused.items()))
    more = (
        f"; they keep the batch full, so {len(unsent)} more messages that were read were not added: fail "
        "the items, and send those"
        if unsent
        else "; send them again under their item ids, or fail their items"
    )
    return errors.SendFailed(
        f"{queue_url} did not accept {len(refused)} of {sent + len(refused)} messages "
        f"(the first: item {item}, {reason}){more}",
        items=refused,
        sent=sent,
        unsent=unsent,
    )
