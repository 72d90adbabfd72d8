"""What a pattern does at the end, the deadline and the idle time of its batches; plain batches do nothing."""

from fanin.app.api import Ledger
from fanin.app.ports.events import Event
from fanin.domain.batch import Batch, State


class Kinds:
    """What the kinds of batches do. Each method may be called again with the same batch."""

    def ended(self, ledger: Ledger, batch: Batch, event: Event) -> Event:  # noqa: ARG002  of no kind
        """The event to publish of an ended batch.

        Args:
            ledger: can read the batch even if it was removed since.
            batch: in its terminal state.
            event: as it is of a plain batch.
        """
        return event

    def announced(self, batch: Batch) -> None:
        """Do what else follows from an end, such as a message to those who wait for it.

        It is called after the event was published. If it raises, all of it is done again later.
        """

    def due(self, ledger: Ledger, batch: Batch) -> Batch | None:
        """Postpone the deadline of a live, settled batch that has come, or end the batch.

        Returns:
            The row after that; None lets the ledger end it.
        """

    def idle(self, ledger: Ledger, batch: Batch) -> State | None:  # noqa: ARG002  of no kind
        """The state in which a live, settled batch that is idle ends; None to spare it.

        Whoever spares a batch must touch its row, so that it is due again only after another idle time.
        """
        return State.ORPHANED

    def stalled(self, batch: Batch) -> Event | None:
        """The event that tells of a live, settled batch without activity for its ``stall_after``.

        Returns:
            None if it waits for a good reason.
        """
