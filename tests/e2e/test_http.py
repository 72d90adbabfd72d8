"""How answers travel through the gateway: compressed, without a body, and with their headers."""

from __future__ import annotations

import json

import pytest
import urllib3

from fanin.client.https.transport import HttpsRequest, SigV4


@pytest.fixture(scope="module")
def call(stack, caller):
    """Sends one signed request."""
    pool, sign = urllib3.PoolManager(), SigV4(caller, stack.region)

    def send(method: str, path: str, body: object = None, **headers: str) -> urllib3.BaseHTTPResponse:
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"Content-Type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = HttpsRequest(method, stack.api_url + path, named, None if method == "HEAD" else payload)
        return pool.request(
            method, request.url, body=request.body, headers=dict(sign(request)), retries=False
        )

    return send


def test_a_long_answer_is_compressed_for_those_who_take_it(call, tracker):
    # Given so many missing ranges that their list is long
    group = tracker.add(tracker.open().batch_id, 200)
    tracker.ack(group[1::2])
    path = f"/v1/batches/{group.batch_id}/missing"
    # When it is read by a client that takes gzip, and by one that does not
    packed, plain = call("GET", path, Accept_Encoding="gzip"), call("GET", path, Accept_Encoding="identity")
    # Then both get the same, once compressed
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert len(packed.json()["ranges"]) == len(plain.json()["ranges"]) == 100


@pytest.mark.parametrize("path", ["/openapi.json", "/v1/batches?state=open", "/v1/scatters/7"])
def test_head_is_answered_wherever_get_is(call, path):
    headed = call("HEAD", path)
    assert (headed.status, headed.data) == (call("GET", path).status, b"")
