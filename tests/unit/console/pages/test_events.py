import json
import re
from datetime import timedelta
from html import unescape

import pytest

from fanin import Failure
from fanin.domain.failures import KeptMessage
from tests.unit.console.looking import HOSTILE, text_of


def told(service, batch_id: int) -> dict[str, object]:
    """The detail of the event of a batch's end, as subscribers got it."""
    return json.loads(service.events_of(batch_id)[-1].body)


def moments(page: str) -> list[str]:
    """What the timeline says, in order."""
    return [
        text_of(one).strip() for one in re.findall(r"<li class=\"[^\"]*\"><span class=\"at\">.*?</li>", page)
    ]


def complete(service) -> int:
    with service.tracker.batch(user_key=HOSTILE, totals=["rows"], metadata={"team": HOSTILE}) as batch:
        group = list(batch.add(100))
    service.tracker.ack(group[0], totals={"rows": 5})
    service.tracker.ack(group[1:])
    return batch.id


def failures(service) -> int:
    with service.tracker.batch() as batch:
        group = list(batch.add(300))
    service.services.ledger.mark([Failure(item, HOSTILE * 20) for item in group[:150]]).whole()
    service.tracker.ack(group[150:])
    return batch.id


def holes(service) -> int:
    with service.tracker.batch(on_failure="hold", totals=["rows"]) as batch:
        group = list(batch.add(500))
    service.services.ledger.mark([Failure(item, "x") for item in group[:30]]).whole()
    service.tracker.ack(group[100::3])
    service.tracker.cancel(batch.id)
    return batch.id


def empty(service) -> int:
    batch = service.tracker.open()
    service.tracker.close(batch.batch_id)
    return batch.batch_id


def estimated(service) -> int:
    with service.tracker.batch(mode="estimated") as batch:
        batch.add(5)
    service.tracker.cancel(batch.id)
    return batch.id


def huge(service) -> int:
    with service.tracker.batch() as batch:
        batch.add(10**9)
    service.tracker.cancel(batch.id)
    return batch.id


@pytest.mark.parametrize("made", [complete, failures, holes, empty, estimated, huge])
def test_the_event_of_an_end_is_the_one_that_was_told(service, browse, made):
    batch_id = made(service)
    file = browse().get(f"/batches/{batch_id}/events/end")
    assert file.json() == told(service, batch_id)
    assert "attachment" in file.headers["content-disposition"]
    page = browse().get(f"/batches/{batch_id}/events").text
    shown = unescape(re.findall(r"<pre[^>]*>(.*)</pre>", page, re.DOTALL)[0])
    assert file.text.startswith(shown)
    assert "<script>alert" not in page


def test_a_live_batch_has_no_event_of_its_end(service, browse):
    batch = service.tracker.open()
    assert "It has not ended" in browse().get(f"/batches/{batch.batch_id}/events").text
    assert browse().get(f"/batches/{batch.batch_id}/events/end").status_code == 404


def test_what_has_happened_is_shown_in_order_of_time(service, browse):
    # Given a batch that was opened, closed, ended with a failure, and redriven, an hour apart
    queue = service.queue()
    hour = timedelta(hours=1)
    batch = service.tracker.open(idle_ttl=timedelta(hours=9))
    group = list(service.tracker.add(batch.batch_id, 2))
    service.advance(hour)
    service.tracker.close(batch.batch_id)
    service.advance(hour)
    service.tracker.ack(group[0])
    service.services.ledger.mark([Failure(group[1], "x", KeptMessage("m"), source=queue)]).whole()
    service.advance(hour)
    retry = service.services.redrives.redrive(batch.batch_id).batch_id
    day = "2026-11-23"
    shown = moments(browse().get(f"/batches/{batch.batch_id}/events").text)
    assert shown[:4] == [
        f"{day} 09:00:00 UTC Opened",
        f"{day} 10:00:00 UTC Closed with 2 items",
        f"{day} 11:00:00 UTC Ended: complete",
        f"{day} 12:00:00 UTC Redrive 1 message sent again as items of batch {retry}",
    ]
    assert "Forgotten" in shown[4]
    # And that of the retry begins with the batch that it retries
    first = moments(browse().get(f"/batches/{retry}/events").text)[0]
    assert first.endswith(f"Opened to redo the failed items of batch {batch.batch_id}")


def test_what_is_to_come_is_said_to_be_so(service, browse):
    batch = service.tracker.open(deadline=timedelta(hours=1), idle_ttl=timedelta(hours=5))
    shown = moments(browse().get(f"/batches/{batch.batch_id}/events").text)
    assert [re.search(r"UTC (\w+)", one)[1] for one in shown] == [
        "Opened",
        "Deadline",
        "Orphaned",
        "Forgotten",
    ]
    assert "to come, in 1 h the batch times out" in shown[1]


def test_a_stall_and_a_deadline_that_passed_are_shown(service, browse):
    with service.tracker.batch(
        stall_after=timedelta(minutes=10), deadline=timedelta(minutes=30), on_deadline="complete"
    ) as batch:
        batch.add(3)
    service.advance(timedelta(minutes=20))
    shown = moments(browse().get(f"/batches/{batch.id}/events").text)
    assert "Stalled no activity for 600 s" in shown[2]
    service.advance(timedelta(minutes=20))
    shown = moments(browse().get(f"/batches/{batch.id}/events").text)
    assert "Deadline" in shown[2]
    assert "Ended: complete with items missing" in shown[3]


def test_a_batch_that_was_given_up_says_why(service, browse):
    with service.tracker.batch(tolerated_failures=0) as batch:
        group = list(batch.add(3))
    service.tracker.fail([Failure(group[0], "x")])
    shown = moments(browse().get(f"/batches/{batch.id}/events").text)
    assert any("Ended: cancelled because of failures" in one for one in shown)


def test_what_was_told_before_the_end_is_among_the_events(service, browse):
    with service.tracker.batch(on_failure="hold") as batch:
        group = batch.add(2)
    service.tracker.ack(group[0])
    service.advance(timedelta(minutes=1))
    service.tracker.fail(group[1], "no price")

    found = "\n".join(moments(browse().get(f"/batches/{batch.id}/events").text))

    assert "First failure" in found
    assert "Waiting" in found
