from __future__ import annotations

import re

from fanin import Failure
from fanin.console.pages.failures import REDRIVES
from fanin.domain.failures import KeptMessage
from fanin.domain.redrives import OrdinalRange, Redrive
from tests.unit.console.looking import HOSTILE, pages_from, text_of


def ended(service, failures: int, reason: str = "no stock") -> int:
    """A batch that has ended with failures, the first of them without a message."""
    queue = service.queue()
    with service.tracker.batch() as batch:
        group = list(batch.add(failures))
    kept = [Failure(item, reason, KeptMessage("m"), source=queue) for item in group[1:]]
    service.services.ledger.mark([Failure(group[0], reason), *kept]).whole()
    return batch.id


def test_a_redrive_is_shown_with_what_became_of_the_failures(service, browse) -> None:
    batch_id = ended(service, 5)
    redrive = service.services.redrives.redrive(batch_id)
    page = browse().get(f"/batches/{batch_id}/redrives").text
    assert "finished all 4 0 1 items 0 \u2013" in text_of(page)
    assert f'<a href="/batches/{redrive.batch_id}">' in page


def test_a_parent_leads_to_its_children_and_they_lead_back(service, browse) -> None:
    tracker = service.tracker
    with tracker.batch(user_key="parent") as parent:
        items = list(parent.add(2))
    with tracker.batch(user_key="good", parent_item=items[0]) as good:
        tracker.ack(good.add(1))
    with tracker.batch(user_key="bad", parent_item=items[1]) as bad:
        tracker.fail(bad.add(1)[0], "no price")
    page = text_of(browse().get(f"/batches/{parent.id}/children").text)
    assert page.index("bad") < page.index("good")
    assert f'href="/batches/{parent.id}"' in browse().get(f"/batches/{bad.id}").text
    assert [one.user_key for one in tracker.iter_batches("complete", parent=parent.id)] == ["good", "bad"]


def test_a_selection_is_shown(service, browse) -> None:
    batch_id = ended(service, 5, HOSTILE)
    errors = [service.services.ledger.errors(batch_id).errors[0].error]
    service.services.redrives.redrive(batch_id, Redrive(errors=errors, ranges=[OrdinalRange(1, 3)]))
    page = browse().get(f"/batches/{batch_id}/redrives").text
    assert "1 \u2013 2" in text_of(page)
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page


def test_every_redrive_is_on_one_page_when_paging_through(service, browse) -> None:
    count = 2 * REDRIVES + 3
    batch_id = ended(service, count + 1)
    for at in range(count):
        service.services.redrives.redrive(batch_id, Redrive(ranges=[OrdinalRange(at + 1, at + 2)]))
    pages = pages_from(browse(), f"/batches/{batch_id}/redrives")
    seen = [at for page in pages for at in re.findall(r'<td class="text">(\d+) \u2013 ', page)]
    assert sorted(map(int, seen)) == list(range(1, count + 1))


def test_a_batch_without_redrives_says_so(service, browse) -> None:
    batch_id = ended(service, 2)
    assert "None of its failures was sent again" in browse().get(f"/batches/{batch_id}/redrives").text
