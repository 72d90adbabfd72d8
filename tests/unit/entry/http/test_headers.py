"""Headers of answers: where what was made is, and whether an opening was a repeat."""

import pytest

from fanin.entry.http.table import ROUTES

KEY = {"Idempotency-Key": "run-7"}


@pytest.mark.parametrize(("path", "body"), [("/v1/batches", {"user_key": "a"}), ("/v1/frames", {"size": 3})])
def test_a_repeated_opening_says_that_it_is_one(call, path, body):
    # Given an opening under a key, and one without
    first, without = call("POST", path, body, headers=KEY), call("POST", path, body)
    # When it is repeated, and others follow
    again = call("POST", path, body, headers=KEY)
    later = call("POST", path, body)
    other = call("POST", path, body, headers={"Idempotency-Key": "run-8"})
    # Then only the repeat is named so, and leads to the same
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]
    for answer in (first, without, later, other):
        assert "Idempotency-Replayed" not in answer.headers


def test_what_was_made_can_be_read_at_its_location(call):
    batch = call("POST", "/v1/batches", {})
    added = call("POST", f"{batch.headers['Location']}/items", {"count": 3})
    frame = call("POST", "/v1/frames", {"size": 3})

    assert call("GET", batch.headers["Location"]).json["batch_id"] == batch.json["batch_id"]
    assert added.headers["Location"] == batch.headers["Location"]
    assert call("GET", frame.headers["Location"]).json["frame_id"] == frame.json["frame_id"]


def test_each_201_has_a_location_but_for_uploads():
    without = {route.operation for route in ROUTES if route.status == 201 and route.location is None}
    assert without == {"claimPayload"}
    assert not [route for route in ROUTES if route.location and route.status != 201]
