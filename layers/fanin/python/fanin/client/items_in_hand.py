"""Items whose messages this process handles now, and those that a handler has left to a child batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class InHand:
    """One handling of a message.

    Attributes:
        left_to_child: whether a child batch of the item was opened meanwhile, so that its end marks the item.
    """

    def __init__(self) -> None:
        self.left_to_child = False


class ItemsInHand:
    """Tells those who open a batch that its parent item is the one whose message is being handled.

    A handler that opens such a batch has not done its item, it has handed it on. Whoever called the handler
    must know that, whichever tracker or thread of the handler opened the batch.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._handlings: dict[str | None, list[InHand]] = {}

    @contextmanager
    def handling(self, item: str | None) -> Iterator[InHand]:
        """Say that the message of an item is handled, for as long as the block runs."""
        handling = InHand()
        with self._lock:
            self._handlings.setdefault(item, []).append(handling)
        try:
            yield handling
        finally:
            with self._lock:
                self._handlings[item].remove(handling)
                if not self._handlings[item]:
                    del self._handlings[item]

    def expects_child(self, item: object) -> bool:
        """Whether the message of an item is handled, and no handler has opened a batch for the item yet.

        A batch that is opened now may be one that an earlier delivery of the message has opened. A second
        one within the same handling is a mistake, which must not pass for a resumption.
        """
        with self._lock:
            handlings = self._handlings.get(str(item), ())
            return bool(handlings) and not any(one.left_to_child for one in handlings)

    def leave_to_child(self, item: str) -> None:
        """Say that a child batch has taken over an item; of an item that nobody handles, nothing is kept."""
        with self._lock:
            for handling in self._handlings.get(item, ()):
                handling.left_to_child = True


IN_HAND = ItemsInHand()
"""Those of this process: item ids of different stacks differ, so all trackers may share it."""
