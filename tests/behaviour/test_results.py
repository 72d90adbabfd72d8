"""Results: what handlers return is kept once for each item, and read for those that are done."""

import pytest

from fanin import Done, ItemFailed, ReceivedMessage
from fanin.errors import InvalidRequest


def test_what_handlers_return_is_kept_beside_the_failures(world):
    # Given a consumer that gives a small, a large, no result, one that is not JSON, and a failure
    tracker, queue = world.tracker, world.tracked_queue()
    with tracker.batch(results=True) as batch:
        batch.send(queue, [{"row": n} for n in range(30)])
    large, failed = "ß" * 20_000, [3]

    def handle(message: ReceivedMessage) -> object:
        row = message.json()["row"]
        if row == 3:
            raise ItemFailed("no price")
        if row == 7 and message.receive_count == 1:
            return {"a set", "of two"}
        return {4: None, 5: large}.get(row, {"row": row, "try": message.receive_count})

    # When it works until the batch has ended
    consumer = tracker.consumer(queue, handle, wait=1, visibility_timeout=1, results=True)
    world.until(lambda: consumer.poll() == 0 and tracker.status(batch.id).batch.state.terminal, within=60)
    # Then each item that is done has its result, in order
    found = {one.ordinal: one.result for one in tracker.iter_results(batch.id)}
    expected = {row: {"row": row, "try": 2 if row == 7 else 1} for row in range(30) if row not in {3, 4, 5}}
    assert found == dict(sorted({**expected, 5: large}.items()))
    assert list(found) == sorted(found)
    assert [one.ordinal for one in tracker.iter_failures(batch.id)] == failed


def test_the_first_result_stays_and_only_items_that_are_done_have_one(world):
    tracker = world.tracker
    with tracker.batch(results=True) as batch:
        group = batch.add(5)
    tracker.ack(group[0], result=0)
    tracker.ack(
        [Done(group[0], result="again"), Done(group[1], result=[1]), Done(group[1], result=2), group[2]]
    )
    tracker.fail(group[3])
    tracker.ack(group[3], result="too late")

    assert [(one.ordinal, one.item, one.result) for one in tracker.results(batch.id).results] == [
        (0, group[0], 0),
        (1, group[1], [1]),
    ]
    page = tracker.results(batch.id, limit=1)
    assert ([one.ordinal for one in page.results], page.cursor is None) == ([0], False)


def test_what_cannot_be_kept_is_refused_and_marks_nothing(world):
    tracker = world.tracker
    batch, plain = tracker.open(results=True), tracker.open()
    (item, *_), (other,) = tracker.add(batch.batch_id, 2), tracker.add(plain.batch_id, 1)

    for of, result, why in [
        (item, object(), "cannot be written as JSON"),
        (item, float("nan"), "cannot be written as JSON"),
        (item, "x" * 2**20, "1048578 bytes as JSON; it may have 1048576"),
        (other, 1, "keeps no results: open it with results=True"),
    ]:
        with pytest.raises(InvalidRequest, match=why):
            tracker.ack(of, result=result)
    with pytest.raises(InvalidRequest, match="single item id"):
        tracker.ack([item], result=1)
    with pytest.raises(InvalidRequest, match="an estimated batch keeps no results"):
        tracker.open(mode="estimated", results=True)
    with pytest.raises(InvalidRequest, match="results must be true or false"):
        tracker.open(results="yes")
    with pytest.raises(InvalidRequest, match="keeps no results"):
        tracker.results(plain.batch_id)
    assert tracker.status(batch.batch_id, exact=True).done_min == 0
    assert tracker.results(batch.batch_id).results == ()
