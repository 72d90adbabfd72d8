"""Diagnostics over HTTPS say the same as directly."""

import pytest

from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.domain.diagnosis import Retry
from fanin.errors import Throttled
from tests.unit.client.https.conftest import URL, Script, problem


def test_a_failed_attempt_is_noted_by_one_request_since_a_consumer_waits_for_it(waits):
    # Given a service that throttles, as when very many attempts at one batch fail at once
    script = Script(*[problem(503, "throttled", retry_after=20)] * 6)
    api = HttpsApi(URL, sign=unsigned, transport=script, backoff=waits.backoff)
    # When a consumer notes one of them
    with pytest.raises(Throttled):
        HttpsServices(api).diagnostics.note_retries([Retry("7:1:0", 2, "no", "work")])
    # Then it goes on at once: its function may have little time left
    assert len(script.requests) == 1
    assert waits.seconds == []
