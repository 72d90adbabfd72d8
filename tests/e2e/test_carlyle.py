"""The API of the original Carlyle, called as its clients do: every route, in the order of their work."""

from __future__ import annotations

import json
import time
from uuid import UUID

import pytest
import urllib3

from fanin.client.https.transport import Request, SigV4
from tests.e2e.deployment import eventually


@pytest.fixture(scope="module")
def call(stack, caller):
    """Calls the original's API; returns its answer, or the status of a refusal."""
    pool, sign = urllib3.PoolManager(), SigV4(caller, stack.region)

    def send(method: str, path: str, body: object = None):
        payload = None if body is None else json.dumps(body).encode()
        url = f"{stack.api_url}/api/v1/batch/{path}"
        request = Request(method, url, {"Content-Type": "application/json"}, payload)
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

    def test_items_of_many_batches_in_one_ack(self, call):
        # Given three batches, of which two are closed
        ids = [call("POST", "exact", {"userKey": f"k{n}"})["batchId"] for n in range(3)]
        items = []
        for batch_id in ids:
            added = call("POST", "exact/items", {"batchId": batch_id, "items": 2})
            items += expand(batch_id, added["batchItemGroupIds"])
        for batch_id in ids[:2]:
            call("POST", f"exact/close/{batch_id}")

        # When all items are acked at once
        answer = call("POST", "exact/items/ack", {"batchItemIds": items})

        # Then the two are complete, and the third is when it is closed
        completions = {done["batchId"]: done["userKey"] for done in answer["batchCompletions"]}
        assert completions == {ids[0]: "k0", ids[1]: "k1"}
        assert call("POST", f"exact/close/{ids[2]}") == {"isComplete": True}

    def test_an_empty_batch_is_complete_when_it_is_closed(self, call):
        batch_id = call("POST", "exact", {})["batchId"]
        assert call("POST", f"exact/close/{batch_id}") == {"isComplete": True}
        assert call("GET", f"exact/{batch_id}")["userKey"] is None

    def test_ids_may_be_text_and_unknown_fields_pass(self, call):
        batch_id = call("POST", "exact", {"userKey": "k", "colour": "blue"})["batchId"]
        added = call("POST", "exact/items", {"batchId": str(batch_id), "items": 1, "colour": "blue"})
        assert len(added["batchItemGroupIds"]) == 1

    def test_refusals(self, call):
        closed = call("POST", "exact", {})["batchId"]
        call("POST", f"exact/close/{closed}")
        assert call("POST", "exact/items", {"batchId": closed, "items": 1}) == 409
        assert call("POST", "exact/items", {"batchId": closed, "items": 0}) == 400
        assert call("POST", "exact/items", {"batchId": 1, "items": 1}) == 404
        assert call("POST", "exact/items/ack", {"batchItemIds": ["1:x:0"]}) == 400
        assert call("GET", "exact/1") == 404
        assert call("DELETE", "exact/open") == 400

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


class TestEstimated:
    def test_a_batch_from_its_creation_to_its_end(self, call, subscriber):
        # Given a batch of messages that are only counted
        batch_id = call("POST", "estimated", {"userKey": "carlyle-2"})["batchId"]
        number = UUID(batch_id).int & (1 << 62) - 1
        assert call("POST", f"estimated/{batch_id}/incr?by=10") is None
        assert call("POST", f"estimated/{batch_id}/incr?by=5") is None
        standing = {"isComplete": False, "isClosed": False, "userKey": "carlyle-2"}
        assert call("GET", f"estimated/{batch_id}") == standing

        # When they are counted down, and the batch is closed in between
        result = {"batchId": batch_id, "userKey": "carlyle-2", "isComplete": False}
        assert call("POST", "estimated/decr", {"acks": [{"batchId": batch_id, "by": 13}]}) == {
            "results": [result]
        }
        assert call("POST", f"estimated/{batch_id}/close") == result
        assert call("POST", "estimated/decr", {"acks": [{"batchId": batch_id}]}) == {"results": [result]}
        answer = call("POST", "estimated/decr", {"acks": [{"batchId": batch_id}]})

        # Then the last one tells that it is complete
        assert answer == {"results": [result | {"isComplete": True}]}
        assert call("GET", f"estimated/{batch_id}") == standing | {"isComplete": True, "isClosed": True}
        event = subscriber.only_event_of(number)
        assert (event["detail"]["user_key"], event["detail"]["acked"]) == ("carlyle-2", 15)

    def test_many_batches_in_one_call(self, call):
        ids = [call("POST", "estimated", {})["batchId"] for _ in range(3)]
        for batch_id in ids:
            call("POST", f"estimated/{batch_id}/incr?by=2")
            call("POST", f"estimated/{batch_id}/close")
        acks = [{"batchId": batch_id, "by": by} for batch_id, by in zip(ids, (2, 1, 1), strict=True)]
        answer = call("POST", "estimated/decr", {"acks": [*acks, {"batchId": ids[2]}]})
        complete = {result["batchId"]: result["isComplete"] for result in answer["results"]}
        assert complete == {ids[0]: True, ids[1]: False, ids[2]: True}

    def test_a_deleted_batch_is_closed_and_takes_no_more(self, call):
        batch_id = call("POST", "estimated", {})["batchId"]
        assert call("DELETE", f"estimated/{batch_id}") is None
        assert call("GET", f"estimated/{batch_id}")["isClosed"] is True
        assert call("POST", f"estimated/{batch_id}/incr?by=1") == 409

    def test_refusals(self, call):
        batch_id = call("POST", "estimated", {})["batchId"]
        assert call("POST", f"estimated/{batch_id}/incr") == 400
        assert call("POST", f"estimated/{batch_id}/incr?by=0") == 400
        assert call("GET", "estimated/1") == 400
        assert call("GET", f"estimated/{'0' * 8}-0000-4000-8000-{'0' * 12}") == 400
        assert call("GET", f"estimated/{'0' * 8}-0000-8000-8000-{'0' * 12}") == 404
        assert call("POST", "estimated/decr", {"acks": [{"batchId": batch_id, "by": -1}]}) == 400
