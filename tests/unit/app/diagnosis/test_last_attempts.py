from __future__ import annotations

from fanin.app.diagnosis.last_attempts import last_attempts
from fanin.app.ports.parts import RetryRow
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
