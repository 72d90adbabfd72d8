"""Callers whom the gateway does not let through; what the service itself refuses is tested below it."""

import json

import boto3
import pytest
import urllib3

from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import HttpsRequest, SigV4
from fanin.errors import AccessDenied

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("path", ["/v1/acks", "/v1/batches", "/api/v1/batch/exact", "/openapi.json"])
def test_unsigned(stack, path):
    method = "GET" if path.endswith("json") else "POST"
    answer = urllib3.PoolManager().request(method, stack.api_url + path, body=b"{}", headers=JSON)
    assert answer.status == 403


def test_signed_for_another_body(stack, caller):
    request = HttpsRequest("POST", f"{stack.api_url}/v1/acks", JSON, b"{}")
    headers = dict(SigV4(caller, stack.region)(request))
    body = json.dumps({"marks": ["1:2:3"]}).encode()
    assert urllib3.PoolManager().request("POST", request.url, body=body, headers=headers).status == 403


def test_signed_by_a_user_who_may_not(stack):
    # Given a user without permissions
    iam = stack.client("iam")
    iam.create_user(UserName="stranger")
    pair = iam.create_access_key(UserName="stranger")["AccessKey"]
    stranger = boto3.Session(pair["AccessKeyId"], pair["SecretAccessKey"], region_name=stack.region)
    # When the user acks, Then it is refused
    ledger = HttpsServices(HttpsApi(stack.api_url, sign=SigV4(stranger, stack.region))).ledger
    with pytest.raises(AccessDenied):
        ledger.mark(["1:2:3"])
