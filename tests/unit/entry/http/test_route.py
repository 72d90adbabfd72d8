"""From an event of API Gateway to a request that has been checked."""

import base64
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from fanin.entry.http.decoding import Decoder
from fanin.entry.http.route import MAX_BODY, HttpRequest, HttpRoute
from fanin.errors import InvalidRequest, RequestTooLarge
from fanin.wire.batches import ADD_ITEMS, GROUP, STATE
from fanin.wire.json_types import BOOLEAN, TEXT, TIME, whole
from fanin.wire.patterns import PUT_ROUTE

ROUTE = HttpRoute("GET", "/v1/things/{batch_id}", "getThing", lambda _, __: None, GROUP)


def decode(route: HttpRoute, path: dict[str, str] | None = None, **event: Any) -> HttpRequest:
    given = {"headers": {}, **event}
    return Decoder(route)(APIGatewayProxyEventV2({"requestContext": {}, **given}), path or {})


class TestQuery:
    ROUTE = ROUTE._replace(
        required={"state": STATE},
        optional={"limit": whole(1, 9), "exact": BOOLEAN, "since": TIME, "cursor": TEXT},
    )

    def test_parameters_become_values_of_their_types(self):
        sent = {
            "state": "open",
            "limit": "3",
            "exact": "true",
            "since": "1970-01-01T00:00:01Z",
            "cursor": "7",
        }
        query = decode(self.ROUTE, queryStringParameters=sent).query
        assert query == {"state": "open", "limit": 3, "exact": True, "since": 1_000, "cursor": "7"}
        assert decode(self.ROUTE, queryStringParameters={"state": "open", "exact": "false"}).query == {
            "state": "open", "exact": False,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("limit", "0"),
            ("limit", "-1"),
            ("limit", "3.0"),
            ("limit", "+3"),
            ("limit", "³"),
            ("limit", " 3"),
            ("limit", "1" * 19),
            ("exact", "True"),
            ("exact", "1"),
            ("exact", ""),
            ("since", "1000"),
            ("colour", "red"),
        ],
    )
    def test_what_is_not_of_its_type_is_refused_by_its_name(self, name, value):
        with pytest.raises(InvalidRequest, match=f"parameter '{name}'"):
            decode(self.ROUTE, queryStringParameters={"state": "open", name: value})

    def test_what_is_required_must_be_there(self):
        with pytest.raises(InvalidRequest, match="the query must have the parameter 'state'"):
            decode(self.ROUTE)
        with pytest.raises(InvalidRequest, match="this call takes no parameters"):
            decode(ROUTE, queryStringParameters={"a": "b"})

    def test_a_time_that_has_the_form_and_is_none_is_refused(self):
        sent = {"state": "open", "since": "2026-02-28T00:00:60Z"}
        with pytest.raises(InvalidRequest, match="is not an RFC 3339 timestamp"):
            decode(self.ROUTE, queryStringParameters=sent)


class TestHeaders:
    ROUTE = ROUTE._replace(keyed=True)

    @pytest.mark.parametrize("name", ["Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY"])
    def test_their_names_have_no_case(self, name):
        assert decode(self.ROUTE, headers={name: "k", "accept": "x"}).key == "k"

    def test_a_header_that_the_route_does_not_name_is_left(self):
        assert decode(ROUTE, headers={"Idempotency-Key": "k"}).key is None

    def test_one_that_is_not_of_its_type_is_refused(self):
        with pytest.raises(InvalidRequest, match="header 'Idempotency-Key' must be text of at least 1"):
            decode(self.ROUTE, headers={"idempotency-key": ""})


class TestBody:
    ROUTE = ROUTE._replace(body=ADD_ITEMS)

    def test_it_is_read_as_text_or_as_base64(self):
        encoded = base64.b64encode(b'{"count": 3}').decode()
        assert decode(self.ROUTE, body='{"count": 3}').body == {"count": 3}
        assert decode(self.ROUTE, body=encoded, isBase64Encoded=True).body == {"count": 3}

    def test_a_route_without_one_does_not_read_it(self):
        assert decode(ROUTE, body="{").body == {}

    def test_it_becomes_its_value_together_with_what_the_path_says(self):
        request = decode(ROUTE._replace(body=PUT_ROUTE), body='{"pattern": {"a": [1]}, "topic": "t"}')
        route = request.shape.decode(request.body, name="orders")
        assert (route.name, route.topic) == ("orders", "t")

    @pytest.mark.parametrize("body", ["%%%", "é", "YQ"])
    def test_base64_that_is_malformed_is_refused(self, body):
        with pytest.raises(InvalidRequest, match="the body is not text in UTF-8"):
            decode(self.ROUTE, body=body, isBase64Encoded=True)

    def test_half_a_surrogate_pair_is_refused(self):
        with pytest.raises(InvalidRequest, match="the body is not text in UTF-8"):
            decode(self.ROUTE, body='{"count": "\ud800"}')

    @pytest.mark.parametrize("encoded", [False, True])
    def test_it_has_a_length_of_bytes(self, encoded):
        def send(length: int) -> HttpRequest:
            body = b'{"count": 3}'.ljust(length)
            text = base64.b64encode(body).decode() if encoded else body.decode()
            return decode(self.ROUTE, body=text, isBase64Encoded=encoded)

        assert send(MAX_BODY).body == {"count": 3}
        with pytest.raises(RequestTooLarge, match="over 1048576 bytes"):
            send(MAX_BODY + 1)
        with pytest.raises(RequestTooLarge, match="over 1048576 bytes"):
            send(MAX_BODY * 2)
        with pytest.raises(RequestTooLarge, match="over 1048576 bytes"):  # though not so many characters
            decode(self.ROUTE, body="ü" * (MAX_BODY // 2 + 1))

    def test_a_missing_one_is_not_json(self):
        with pytest.raises(InvalidRequest, match="the body is not JSON: it is empty"):
            decode(self.ROUTE)


class TestPath:
    def test_a_batch_is_named_by_a_whole_number(self):
        assert decode(ROUTE, {"batch_id": "7"}).batch_id == 7
        with pytest.raises(InvalidRequest, match="batch id 'x'"):
            _ = decode(ROUTE, {"batch_id": "x"}).batch_id

    @pytest.mark.parametrize(
        ("path", "matches"),
        [
            ("/v1/things/7", True),
            ("/v1/things/a%2Fb", True),
            ("/v1/things/", False),
            ("/v1/things/7/8", False),
            ("/v1/things", False),
            ("x/v1/things/7", False),
        ],
    )
    def test_a_route_knows_its_own_path(self, path, matches):
        assert ROUTE.matches(path) is matches
