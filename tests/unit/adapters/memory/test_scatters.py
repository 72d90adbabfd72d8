"""Jobs and claim checks of scatters in memory."""

from __future__ import annotations

from fanin.adapters.memory import Memory


def test_jobs_wait_in_order() -> None:
    memory = Memory()
    memory.jobs.send({"batch_id": 7, "chunk": chunk, "wave": 0} for chunk in range(3))
    assert [job["chunk"] for job in memory.jobs.waiting] == [0, 1, 2]
    assert memory.accesses.sends == {"jobs.send": 3}


def test_a_payload_is_there_once_it_was_uploaded() -> None:
    claims = Memory().claims
    claim = claims.upload("7/0/a", size=5, content_type="text/plain")
    assert (claim.key, claim.headers["Content-Length"]) == ("7/0/a", "5")
    assert claim.url == claims.download("7/0/a")
    assert not claims.exists("7/0/a")
    claims.uploaded.add("7/0/a")
    assert claims.exists("7/0/a")
