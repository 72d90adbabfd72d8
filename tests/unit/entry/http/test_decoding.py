"""How bodies travel: types of requests, HEAD, and compressed answers."""

import base64
import gzip
import json
from typing import Any

import pytest

from fanin.entry.http.application import COMPRESSED_FROM, serve
from tests.unit.entry.conftest import CONTEXT, Client


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON; charset=UTF-8",
        'application/json;charset="utf8"',
        "application/json;",
        "application/json; version=1",
        'application/json; profile="a b; c"; charset=utf-8',
        "application/vnd.shop.order+json",
        "application/cloudevents+json; charset=utf-8",
        "",
    ],
)
def test_a_body_of_json_is_taken(call, content_type):
    assert call("POST", "/v1/batches", {}, headers={"content-type": content_type}).status == 201


@pytest.mark.parametrize(
    "content_type",
    [
        "application/x-www-form-urlencoded",
        "text/plain",
        "text/json",
        "application/jsonp",
        "+json",
        "application/json; charset=latin-1",
        "application/json; version=1; charset=latin-1",
        "application/json; what",
        "application/json, text/plain",
    ],
)
def test_a_body_of_another_type_is_refused(call, content_type):
    answer = call("POST", "/v1/batches", {}, headers={"content-type": content_type})

    assert (answer.status, answer.json["type"]) == (415, "urn:fanin:problem:unsupported-media-type")
    assert content_type[:20] in answer.json["detail"]
    assert "Content-Type: application/json" in answer.json["detail"]


def test_a_compressed_body_is_refused(call):
    body = base64.b64encode(gzip.compress(b"{}")).decode()

    answer = call("POST", "/v1/batches", raw=body, headers={"Content-Encoding": "gzip"})

    assert (answer.status, answer.json["type"]) == (415, "urn:fanin:problem:unsupported-media-type")
    assert "Content-Encoding" in answer.json["detail"]
    assert call("POST", "/v1/batches", {}, headers={"Content-Encoding": "identity"}).status == 201


def test_the_type_does_not_matter_where_there_is_no_body(call):
    batch = call("POST", "/v1/batches", {}).json["batch_id"]
    assert call("POST", f"/v1/batches/{batch}/close", headers={"content-type": "text/plain"}).status == 200


def test_head_has_the_answer_of_get_without_its_body(call):
    path = f"/v1/batches/{call('POST', '/v1/batches', {}).json['batch_id']}"
    got, headed = call("GET", path), call("HEAD", path)

    assert (headed.status, headed.text) == (200, "")
    assert headed.headers == got.headers
    assert call("HEAD", "/v1/batches/7").status == 404
    assert call("HEAD", "/openapi.json").status == 200


def test_options_name_the_methods_of_a_path(call):
    answer = call("OPTIONS", "/v1/batches/7")
    assert (answer.status, answer.headers["Allow"]) == (204, "DELETE, GET, HEAD, OPTIONS")
    assert call("OPTIONS", "/v1/nothing").status == 404


def answered(call: Client, path: str, **headers: str) -> dict[str, Any]:
    event = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {"http": {"method": "GET", "path": path}, "requestId": "r", "stage": "$default"},
        "isBase64Encoded": False,
    }
    return serve(call.app, event, CONTEXT)


def test_a_long_answer_is_compressed_for_those_who_take_it(call):
    plain = answered(call, "/openapi.json")
    packed = answered(call, "/openapi.json", **{"accept-encoding": "br, gzip;q=0.5"})

    assert len(plain["body"]) > COMPRESSED_FROM
    assert "Content-Encoding" not in plain["headers"]
    assert packed["headers"]["Content-Encoding"] == "gzip"
    assert packed["isBase64Encoded"] is True
    assert gzip.decompress(base64.b64decode(packed["body"])).decode() == plain["body"]
    assert len(packed["body"]) < len(plain["body"]) / 3
    assert plain["headers"]["Vary"] == packed["headers"]["Vary"] == "Accept-Encoding"


def test_a_short_answer_is_sent_as_it_is(call):
    answer = answered(call, "/v1/batches/7", **{"accept-encoding": "gzip"})
    assert json.loads(answer["body"])["status"] == 404
    assert "Vary" not in answer["headers"]
