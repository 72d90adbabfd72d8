"""Jobs and claim checks in memory."""

from fanin.adapters.memory import Memory, MemoryClaims
from fanin.adapters.memory.accesses import Accesses


def test_jobs_wait_in_order_and_are_handed_over_one_by_one() -> None:
    memory = Memory()

    memory.jobs.send({"part": part} for part in range(3))

    assert memory.jobs.waiting == [{"part": 0}, {"part": 1}, {"part": 2}]
    assert memory.accesses.sends == {"jobs.send": 3}


def test_an_onlooker_comes_between_two_jobs() -> None:
    waiting: list[int] = []

    def look(call: str, moment: str) -> None:
        if (call, moment) == ("jobs.send", "after"):
            waiting.append(len(memory.jobs.waiting))

    memory = Memory(on_call=look)
    memory.jobs.send([{}, {}])

    assert waiting == [1, 2]


def test_an_upload_is_for_a_key_a_size_and_a_type() -> None:
    check = MemoryClaims(Accesses()).upload("8/0/a", size=7, content_type="text/plain")

    assert (check.key, check.url) == ("8/0/a", "memory://claims/8/0/a")
    assert check.headers == {"Content-Type": "text/plain", "Content-Length": "7"}


def test_an_object_is_there_once_it_was_uploaded_not_when_it_may_be() -> None:
    claims = MemoryClaims(Accesses())
    claims.upload("8/0/a", size=7, content_type="text/plain")
    assert not claims.exists("8/0/a")

    claims.uploaded.add("8/0/a")

    assert claims.exists("8/0/a")
    assert claims.download("8/0/a") == claims.upload("8/0/a", size=7, content_type="x").url


def test_what_the_service_stores_is_loaded_and_what_is_not_there_is_left_out() -> None:
    claims = MemoryClaims(Accesses())
    claims.put("8/0/a", b"{}")

    assert claims.load(["8/0/a", "8/0/b"]) == {"8/0/a": b"{}"}
    assert claims.exists("8/0/a")
