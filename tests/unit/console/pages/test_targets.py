from __future__ import annotations

from fanin.domain.targets import Target, TargetType, When
from tests.unit.console.calls import counted
from tests.unit.console.looking import text_of

HOOK = Target(TargetType.WEBHOOK, When.FAILED, url="https://hooks.example.com/very-secret")


def test_targets_are_shown_with_what_became_of_them(service, browse) -> None:
    # Given a batch with a queue and a webhook
    queue = Target(TargetType.SQS, queue_url=service.queue("ends", channel=True))
    with service.tracker.batch(on_end=[queue, HOOK]) as batch:
        group = batch.add(1)
    browser = browse()
    address = f"/batches/{batch.id}/targets"
    page = browser.get(address).text
    assert "1 sqs ends any end pending 0" in text_of(page)
    assert "2 webhook https://hooks.example.com/… any other end pending 0" in text_of(page)
    assert "very-secret" not in page
    # When it ends
    service.tracker.ack(group)
    # Then the queue was told, and the webhook did not want to be
    shown = text_of(browser.get(address).text)
    assert "1 sqs ends any end delivered" in shown
    assert "any other end skipped" in shown


def test_a_batch_without_targets_is_not_asked_for_them(service, browse) -> None:
    batch = service.tracker.open()
    calls = counted(service)
    assert "Nobody asked to be told" in browse().get(f"/batches/{batch.batch_id}/targets").text
    assert calls == ["ledger.status"]
