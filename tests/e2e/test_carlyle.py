"""The API of the original Carlyle, called as its clients do: every route, in the order of their work."""

from __future__ import annotations

import json
import time

import pytest
import urllib3

from fanin.client.https.transport import HttpsRequest, SigV4
from tests.e2e.deployment import eventually


@pytest.fixture(scope="module")
def call(stack, caller):
    """Calls the original's API; returns its answer, or the status of a refusal."""
    pool, sign = urllib3.PoolManager(), SigV4(caller, stack.region)

    def send(method: str, path: str, body: object = None):
        payload = None if body is None else json.dumps(body).encode()
        url = f"{stack.api_url}/api/v1/batch/{path}"
        request = HttpsRequest(method, url, {"Content-Type": "application/json"}, payload)
        answer = pool.request(method, url, body=payload, headers=dict(sign(request)), retries=False)
        if answer.status >= 400:
            return answer.status
        return answer.json() if answer.data else None

    return send


def expand(batch_id: int, groups: list[dict]) -> list[str]:
    """Item ids as the original's clients make them."""
    return [f"{batch_id}:{group['id']}:{n}" for group in groups for n in range(group["upto"])]


class TestExact:
    def test_a_batch_from_its_creation_to_its_end(self, call, subscriber):
        # Given a batch with items
        batch_id = call("POST", "exact", {"userKey": "carlyle-1"})["batchId"]
        assert isinstance(batch_id, int)
        groups = [
            group
            for items in (3, 100)
            for group in call("POST", "exact/items", {"batchId": batch_id, "items": items})[
                "batchItemGroupIds"
            ]
        ]
        items = expand(batch_id, groups)
        assert len(set(items)) == 103
        standing = {"batchId": batch_id, "isComplete": False, "isClosed": False, "userKey": "carlyle-1"}
        assert call("GET", f"exact/{batch_id}") == standing

        # When some are acked, the batch is closed, and the rest is acked, one item twice
        assert call("POST", "exact/items/ack", {"batchItemIds": items[:60]}) == {"batchCompletions": []}
        assert call("POST", f"exact/close/{batch_id}") == {"isComplete": False}
        assert call("GET", f"exact/{batch_id}") == standing | {"isClosed": True}
        answer = call("POST", "exact/items/ack", {"batchItemIds": items[59:]})

        # Then the last ack tells that the batch is complete, and so does everything else
        assert answer == {"batchCompletions": [{"batchId": batch_id, "userKey": "carlyle-1"}]}
        assert call("GET", f"exact/{batch_id}") == standing | {"isClosed": True, "isComplete": True}
        assert call("POST", f"exact/close/{batch_id}") == {"isComplete": True}
        assert subscriber.only_event_of(batch_id)["detail"]["user_key"] == "carlyle-1"

    def test_old_batches_are_deleted(self, call, subscriber):
        # Given an open batch and a complete one, both without activity since
        left = call("POST", "exact", {})["batchId"]
        call("POST", "exact/items", {"batchId": left, "items": 5})
        done = call("POST", "exact", {})["batchId"]
        call("POST", f"exact/close/{done}")
        subscriber.only_event_of(done)
        since = int(time.time() * 1000) + 60_000

        # When open and closed ones are deleted
        opened = call("DELETE", f"exact/open?since={since}")
        closed = call("DELETE", f"exact/closed?since={since}")

        # Then both are gone, and all that had been left by others
        assert opened["batchesRemoved"] >= 1
        assert opened["itemsRemoved"] >= 5
        assert closed["batchesRemoved"] >= 2  # the orphan of the first call too
        assert subscriber.only_event_of(left)["detail-type"] == "Batch Orphaned"
        assert eventually(lambda: call("GET", f"exact/{done}") in {404, 410})
        assert call("DELETE", f"exact/open?since={since}") == {"batchesRemoved": 0, "itemsRemoved": 0}
