"""What a repeat buffer in memory guarantees when threads share it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from fanin.client.frames.memory_repeat_buffer import MemoryRepeatBuffer
from fanin.client.frames.repeat_buffer import Usage
from fanin.errors import BufferFull


def test_threads_that_put_keep_to_the_bounds_and_lose_nothing() -> None:
    # Given a buffer for 500 payloads, and eight threads that put 100 each
    buffer = MemoryRepeatBuffer(max_envelopes=500)

    def put(thread: int) -> int:
        kept = 0
        for number in range(100):
            try:
                buffer.put(f"{thread}/{number:02}".encode())
            except BufferFull:
                continue
            kept += 1
        return kept

    # When they all put at the same time
    with ThreadPoolExecutor(8) as pool:
        kept = sum(pool.map(put, range(8)))

    # Then exactly so many were accepted, each once
    assert kept == buffer.waiting == 500
    assert buffer.usage == Usage(500, 500 * 4)
    buffer.assign(7, 500)
    assert len({envelope.payload for envelope in buffer.read(7, [(0, 500)])}) == 500


def test_a_frame_may_be_dropped_while_it_is_read() -> None:
    buffer = MemoryRepeatBuffer()
    for payload in (b"a", b"b"):
        buffer.put(payload)
    buffer.assign(7, 2)
    reading = buffer.read(7, [(0, 2)])
    first = next(reading)
    buffer.drop(7)
    assert [first.payload, *(envelope.payload for envelope in reading)] == [b"a", b"b"]
