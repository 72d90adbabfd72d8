"""docs/how-to/fastapi.md: the service runs, and a repeated request fans out once."""

import base64
import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fanin import Tracker
from fanin.adapters.webhooks import signed_headers, webhook_body
from fanin.app.ports.queues import ChannelNotice
from fanin.testing import Fault, InMemoryService
from tests.docs import pages

(SERVICE,) = pages.code("how-to/fastapi.md")
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
ROWS = [{"sku": str(n)} for n in range(25)]


class Site:
    """The page's service on a fanin in memory, with its queue and its callers."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.fanin = InMemoryService()
        self.queue = self.fanin.queue("rows")
        self.ended: list[dict[str, Any]] = []
        patch.setattr(Tracker, "from_env", lambda: self.fanin.tracker)
        for name, value in (
            ("ROWS_QUEUE_URL", self.queue),
            ("PUBLIC_URL", "https://shop.example.com"),
            ("WEBHOOK_SECRET", SECRET),
        ):
            patch.setenv(name, value)
        scope: dict[str, Any] = {"__name__": "service"}
        exec(compile(SERVICE, "service.py", "exec", dont_inherit=True), scope)

        async def import_ended(end: dict[str, Any]) -> None:
            self.ended.append(end)

        scope["import_ended"] = import_ended
        self.client = TestClient(scope["app"], raise_server_exceptions=False)

    def start(self, key: str | None = "monday", rows: list[dict[str, str]] = ROWS) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.client.post("/imports", json={"rows": rows}, headers=headers)

    @property
    def messages(self) -> int:
        attributes = self.fanin.sqs.get_queue_attributes(
            QueueUrl=self.queue, AttributeNames=["ApproximateNumberOfMessages"]
        )
        return int(attributes["Attributes"]["ApproximateNumberOfMessages"])

    def call_back(self, secret: str = SECRET) -> list[int]:
        """Tell the service what fanin tells its webhooks, signed as fanin signs it; the answers."""
        statuses = []
        for told in self.fanin.callbacks:
            assert told.target.url == "https://shop.example.com/imports/ended"
            body = webhook_body(ChannelNotice(told.event, succeeded=told.succeeded))
            headers = dict(signed_headers(secret, told.event.id, int(time.time()), body))
            statuses.append(self.client.post("/imports/ended", content=body, headers=headers).status_code)
        return statuses


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(monkeypatch)


def test_a_request_starts_the_work_and_can_be_followed_to_its_end(site):
    # Given a request that is answered at once
    answer = site.start()
    assert answer.status_code == 202
    started = answer.json()
    assert site.client.get(started["progress"]).json() == {
        "state": "closed",
        "items": 25,
        "done": 0,
        "failed": 0,
    }
    # When a consumer has handled the rows
    rows: list[str] = []
    site.fanin.consume(site.queue, site.fanin.tracker.sqs_handler(lambda message: rows.append(message.body)))
    # Then the progress says so, and so does the webhook
    assert len(rows) == 25
    assert site.client.get(started["progress"]).json()["state"] == "complete"
    assert site.call_back() == [204]
    assert [(end["batch_id"], end["state"], end["failed"]) for end in site.ended] == [
        (started["id"], "complete", 0)
    ]


def test_a_request_that_is_repeated_fans_out_once(site):
    first, second = site.start(), site.start()
    assert first.json() == second.json()
    assert site.messages == 25
    assert site.start("tuesday").json() != first.json()
    assert site.messages == 50


@pytest.mark.parametrize("access", ["batches.create", "batches.allocate_once", "batches.close"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_request_that_broke_off_is_gone_on_with(site, access, moment):
    # Given a process that died in the middle of a request
    site.fanin.on_call = Fault(access, moment, error=RuntimeError("the process died"))
    assert site.start().status_code == 500
    # When the client repeats it
    answer = site.start()
    # Then the batch is closed, and has each row once
    assert answer.status_code == 202
    (batch,) = site.fanin.tracker.iter_batches("closed")
    assert (batch.batch_id, batch.items) == (answer.json()["id"], 25)


def test_an_outage_is_an_error_that_may_be_repeated(site):
    site.fanin.on_call = Fault("batches.create")
    answer = site.start()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert answer.json()["code"] == "service-unavailable"
    assert site.start().status_code == 202


def test_what_the_client_got_wrong_is_said(site):
    site.start()
    assert site.start("monday", ROWS[:3]).json()["code"] == "idempotency-key-reused"
    assert site.start("monday", [*ROWS[:24], {"sku": "other"}]).status_code == 409
    assert site.start(None).status_code == 422
    assert site.start("empty", []).status_code == 422
    assert site.client.get("/imports/999999999999999").status_code == 404
    assert site.messages == 25


def test_a_webhook_with_a_wrong_signature_is_refused(site):
    site.start()
    site.fanin.consume(site.queue, site.fanin.tracker.sqs_handler(lambda _: None))
    assert site.call_back("whsec_" + base64.b64encode(b"x" * 32).decode()) == [401]
    assert site.ended == []
