"""What is told of a batch before its end: failing, waiting for held items alone, and its milestones."""

import json

from fanin import Failure, names
from tests.behaviour.world import take


def test_a_batch_tells_that_it_fails_how_far_it_is_and_that_it_waits_and_then_that_it_ended(world):
    # Given a batch that holds failures, with a queue for each thing that is told before its end
    tracker, queues = world.tracker, {when: world.queue(channel=True) for when in names.EARLY_TYPES}
    with tracker.batch(
        on_failure="hold",
        milestones=[50, 100],
        on_end=[{"type": "sqs", "when": when, "queue_url": url} for when, url in queues.items()],
    ) as batch:
        group = batch.add(10)
    assert world.events(batch.id) == []
    # When all but one are done, and that one fails
    tracker.ack(group[0:9])
    tracker.mark([Failure(group[9], "no price")])
    # Then each is told once, before the end
    early = world.until(lambda: len(told := world.events(batch.id)) > 2 and told)
    assert {one.detail_type for one in early} == set(names.EARLY_TYPES.values())
    details = {one.detail_type: one.detail for one in early}
    assert details["Batch Progress"]["percent"] == 50
    assert [one["reason"] for one in details["Batch Failing"]["failures"]] == ["no price"]
    assert details["Batch Waiting"]["held"] == 1
    # And when the held item is done, the last milestone comes right before the end
    tracker.ack(group[9])
    world.only_event(batch.id)
    last = [(one.detail_type, one.detail.get("percent")) for one in world.events(batch.id)[3:]]
    assert sorted(last) == [("Batch Completed", None), ("Batch Progress", 100)]
    # And the targets were told of what they asked for
    world.until(lambda: all(one.state == "delivered" for one in tracker.targets(batch.id)))
    for when, url in queues.items():
        percents = [50, 100] if when == "progress" else [0]
        told = [json.loads(message.body) for message in take(world, url, len(percents))]
        assert {one["detail-type"] for one in told} == {names.EARLY_TYPES[when]}
        assert sorted(one["detail"].get("percent", 0) for one in told) == percents


def test_a_failure_three_levels_down_is_told_on_every_level_before_its_end(world):
    # Given a batch in an item of a batch in an item of a batch
    tracker, item, batches = world.tracker, None, []
    for _ in range(3):
        batch = tracker.open(parent_item=item)
        batches.append(batch.batch_id)
        (item,) = tracker.add(batch.batch_id, 1)
        tracker.close(batch.batch_id)
    # When the innermost item fails
    tracker.fail(item, "no price")
    # Then each batch tells that it fails, and then its end
    for batch_id in reversed(batches):
        world.only_event(batch_id)
        assert {one.detail_type for one in world.events(batch_id)} == {"Batch Failing", "Batch Completed"}
