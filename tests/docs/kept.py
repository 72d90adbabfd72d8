"""What was kept of failed items, as tests of pages compare it."""

from fanin import Tracker


def reasons(tracker: Tracker, batch_id: int) -> dict[str, str]:
    """The message of each failed item of a batch → why it failed."""
    kept = {}
    for failure in tracker.iter_failures(batch_id):
        message = tracker.kept_message(failure.item)
        assert message is not None
        kept[message.body] = failure.reason
    return kept
