"""The route of the bit picture."""

from __future__ import annotations


def test_a_picture_shows_cells_and_items(call) -> None:
    # Given 100 items, of which the last one failed, and all before 65 are done
    batch_id = call("POST", "/v1/batches", {}).json["batch_id"]
    group = call("POST", f"/v1/batches/{batch_id}/items", {"count": 100}).json
    prefix, path = f"{batch_id}:{group['id']}", f"/v1/batches/{batch_id}/picture"
    call("POST", "/v1/acks", {"marks": [{"group": prefix, "from": 0, "to": 65}]})
    call("POST", "/v1/acks", {"marks": [{"failed": f"{prefix}:99", "reason": "no price"}]})

    # When its root and one word below are looked at
    root = call("GET", path).json
    below = call("GET", path, level="0", number="1").json

    # Then cells have their words in hexadecimal, and items their states
    assert {name: root[name] for name in ("level", "number", "root_level", "size", "start", "stop")} == {
        "level": 1, "number": 0, "root_level": 1, "size": 100, "start": 0, "stop": 100,
    }  # fmt: skip
    assert root["items"] == []
    assert root["cells"][1] == {
        "number": 1, "start": 64, "stop": 100, "parts": 36, "done_min": 2, "done_max": 2,
        "failed": 1, "failed_more": False, "word": "00000007fffffffe",
    }  # fmt: skip
    assert root["cells"][0]["word"] == "0" * 16
    assert below["cells"] == []
    assert [(item["ordinal"], item["state"]) for item in below["items"]] == [
        (64, "done"), *((n, "pending") for n in range(65, 99)), (99, "failed"),
    ]  # fmt: skip
    assert below["items"][0]["leased_until"] is None
    assert call("POST", "/v1/acks", {"marks": [below["items"][1]["item"]]}).json["batches"][0]["first"] == 1
