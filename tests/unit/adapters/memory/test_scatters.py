"""The queue of jobs, and the bucket of large payloads, in memory."""

from __future__ import annotations

from fanin.adapters.memory import Memory


def test_jobs_wait_in_order_each_an_access_of_its_own() -> None:
    memory = Memory()

    memory.jobs.send({"chunk": n} for n in range(3))
    memory.jobs.send([{"chunk": 3}])

    assert memory.jobs.waiting == [{"chunk": n} for n in range(4)]
    assert memory.accesses.sends["jobs.send"] == 4


def test_a_payload_is_there_once_a_test_says_so() -> None:
    claims = Memory().claims
    check = claims.upload("7/0/k", size=12, content_type="text/plain")

    assert not claims.exists(check.key)
    claims.uploaded.add(check.key)
    assert claims.exists(check.key)
    assert check.url == claims.download(check.key) == "memory://claims/7/0/k"
    assert check.headers == {"Content-Type": "text/plain", "Content-Length": "12"}
