from __future__ import annotations

import re

from fanin.console.pages.missing import ROWS
from fanin.domain.marks import ItemRange
from tests.unit.console.calls import counted
from tests.unit.console.looking import pages_from, text_of


def test_missing_ranges_are_listed_with_group_ids_that_can_be_used(service, browse) -> None:
    # Given a batch with two holes
    with service.tracker.batch() as batch:
        group = list(batch.add(100))
    service.tracker.ack(group[1:40] + group[60:])
    page = browse().get(f"/batches/{batch.id}/missing").text
    assert "0 1" in text_of(page)
    assert "40 \u2013 59 20" in text_of(page)
    # When the items of the groups on the page are acknowledged
    groups = re.findall(r'<code class="copy">([^<]*)</code>', page)
    service.services.ledger.mark([ItemRange(group) for group in groups]).whole()
    # Then nothing is missing
    assert "Nothing is missing." in browse().get(f"/batches/{batch.id}/missing").text


def test_all_ranges_are_on_one_page_when_paging_through(service, browse) -> None:
    with service.tracker.batch() as batch:
        group = list(batch.add(6 * ROWS))
    service.tracker.ack(group[::2])
    pages = pages_from(browse(), f"/batches/{batch.id}/missing")
    seen = [at for page in pages for at in re.findall(r'<th scope="row" class="figures">([\d,]+)', page)]
    assert [int(at.replace(",", "")) for at in seen] == list(range(1, 6 * ROWS, 2))


def test_an_estimated_batch_does_not_know(service, browse) -> None:
    with service.tracker.batch(mode="estimated") as batch:
        batch.add(3)
    calls = counted(service)
    shown = browse().get(f"/batches/{batch.id}/missing").text
    assert "does not know which are missing" in shown
    assert calls == ["ledger.status"]
