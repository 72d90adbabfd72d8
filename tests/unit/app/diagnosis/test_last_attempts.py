from __future__ import annotations

from fanin.app.diagnosis.last_attempts import last_attempts, sent_queues
from fanin.app.ports.parts import RetryRow, SentRow
from tests.unit.app.diagnosis.conftest import Scene


def test_attempts_are_those_of_the_notes_and_bad_ids_have_none(scene: Scene) -> None:
    first, second = scene.group(3), scene.group(3)
    for group in (first, second):
        row = RetryRow(1, 2, f"error of {group.batch_id}", "work", 0)
        scene.memory.parts.put_retries(group.batch_id, [row], expires_at=0)
    items = [first[0], first[1], second[1], "forged", ""]

    found = last_attempts(scene.ports, items)

    assert {item: (row.error, row.queue) for item, row in found.items()} == {
        first[1]: (f"error of {first.batch_id}", "work"),
        second[1]: (f"error of {second.batch_id}", "work"),
    }

    # And notes of one batch that cannot be read now are done without, and keep those of others
    scene.refuse("parts.retries")
    assert set(last_attempts(scene.ports, items)) == {second[1]}


WORK, OTHER = "https://sqs/1/work", "arn:aws:sqs:eu-west-1:1:other"


def test_an_item_that_was_sent_to_one_queue_has_it(scene: Scene) -> None:
    # Given a batch of which three items were sent to one queue, one to another, one to both, and one to none
    group = scene.group(6)
    for row in (SentRow(WORK, 0, 3, 0, 0), SentRow(OTHER, 3, 5, 0, 0), SentRow(WORK, 4, 5, 0, 0)):
        scene.memory.parts.put_sent(group.batch_id, row, expires_at=0)

    # Then the last two have none
    found = sent_queues(scene.ports, [*group, "forged", ""])
    assert found == {**dict.fromkeys(group[0:3], WORK), group[3]: OTHER}

    # And notes that cannot be read now are done without
    scene.refuse("parts.sent")
    assert sent_queues(scene.ports, [*group]) == {}
