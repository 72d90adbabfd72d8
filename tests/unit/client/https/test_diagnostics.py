"""Diagnostics over HTTPS say the same as directly."""

from __future__ import annotations

import pytest

from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.domain.batch import OpenBatch
from fanin.domain.diagnosis import Retry, SentItems
from fanin.errors import Throttled
from tests.unit.client.https.conftest import URL, Script, Waits, problem


def test_a_diagnosis_is_the_same_over_https(over_https: HttpsServices, direct: Services) -> None:
    batch = direct.ledger.open(OpenBatch())
    group = direct.ledger.add(batch.batch_id, 5)

    over_https.diagnostics.note_sent(batch.batch_id, SentItems("https://sqs/1/work", 0, 3))
    over_https.diagnostics.note_retries([Retry(group[1], 2, "no", "work")])

    found = over_https.diagnostics.why(batch.batch_id)
    there = direct.diagnostics.why(batch.batch_id)
    assert found.findings == there.findings
    assert found.missing == there.missing
    assert {one.code for one in found.findings} >= {"retrying", "never_sent", "open_not_closed"}


def test_a_failed_attempt_is_noted_by_one_request_since_a_consumer_waits_for_it(waits: Waits) -> None:
    # Given a service that throttles, as when very many attempts at one batch fail at once
    script = Script(*[problem(503, "throttled", retry_after=20)] * 6)
    api = HttpsApi(URL, sign=unsigned, transport=script, backoff=waits.backoff)

    # When a consumer notes one of them
    with pytest.raises(Throttled):
        HttpsServices(api).diagnostics.note_retries([Retry("7:1:0", 2, "no", "work")])

    # Then it goes on at once: its function may have little time left
    assert len(script.requests) == 1
    assert waits.seconds == []
