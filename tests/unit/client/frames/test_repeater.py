"""The repeater: what it repeats and when, what it forgets, and how it goes on after a crash."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby

import pytest

from fanin.adapters.backoff import Backoff
from fanin.app.frames import FrameService
from fanin.client.frames.envelopes import Envelope, Notice
from fanin.client.frames.receiver import Delivery
from fanin.client.frames.repeat_buffer import BufferUsage, MemoryRepeatBuffer, SqliteRepeatBuffer
from fanin.client.frames.repeater import CheckSchedule, Repeater
from fanin.domain.frames import Frame, OpenFrame
from fanin.errors import BufferFull, EnvelopesRefused, InvalidRequest, ServiceUnavailable, Throttled
from tests.unit.client.frames.conftest import World
from tests.unit.client.frames.test_repeat_buffer import limit_disk


def test_forgets_a_frame_when_it_hears_that_it_is_complete(world):
    repeater = world.sender(b"a")
    world.take(world.receiver(lambda _: None))
    world.announce()
    reads = world.memory.accesses.reads.total()
    assert repeater.tick() == 0
    assert repeater.buffer.usage == BufferUsage(0, 0)
    assert world.memory.accesses.reads.total() == reads


def test_repeats_when_it_is_asked_to(world):
    repeater = world.sender(b"a")
    world.queue.clear()
    repeater._outstanding._next[repeater.buffer.frames()[0]] = (1e12, 0)
    world.clock.advance(61_000)
    world.process().reap()
    repeater.tick()
    assert [envelope.payload for envelope in world.queue] == [b"a"]


def test_a_frame_completed_while_the_sender_was_away(world, tmp_path):
    buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
    world.sender(b"a", buffer=buffer)
    buffer.close()
    world.take(world.receiver(lambda _: None))
    world.announce()
    world.notices()  # they went to a sender that is no more

    buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
    assert world.repeater(buffer).tick() == 0
    assert (buffer.usage, world.queue) == (BufferUsage(0, 0), [])
    buffer.close()


def test_a_frame_that_is_long_gone_is_delivered_anew_however_large_it_was(world, tmp_path):
    # Given a sender that died with a frame of five, which the service has long forgotten
    buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
    world.sender(*(b"%d" % number for number in range(5)), buffer=buffer, size=5)
    world.queue.clear()
    world.clock.advance(40 * 86_400_000)
    # When another one begins, whose frames are smaller
    second, effects = world.repeater(buffer, size=2), []
    second.tick()
    second.flush()
    world.take(world.receiver(lambda delivery: effects.append(delivery.payload)))

    assert effects == [b"0", b"1", b"2", b"3", b"4"]
    buffer.close()


def test_run_flushes_and_ticks_with_a_pause_until_told_to_stop(world):
    # Given a payload, and a receiver that works after the first round
    repeater, rounds = world.repeater(), []
    repeater.put(b"a")

    def stop() -> bool:
        rounds.append((len(world.queue), world.clock.at))
        if len(rounds) == 2:
            world.take(world.receiver(lambda _: None))
            world.announce()
        return not repeater.buffer.usage.envelopes

    repeater.run(stop, pause=2.0)
    # Then it sent at once, and stopped after the round in which it heard of the end
    assert [sent for sent, _ in rounds] == [0, 1, 0]
    began = rounds[0][1]
    assert [at - began for _, at in rounds] == [0, 2_000, 4_000]


@pytest.mark.parametrize(
    ("fault", "logged"),
    [
        (OSError("gone"), "the reply channel cannot be read now, trying again later: gone"),
        (ZeroDivisionError(), "the reply channel cannot be read"),
    ],
)
def test_a_reply_channel_that_fails_holds_up_nothing(world, caplog, fault, logged):
    # Given a repeater that cannot read its reply channel, and an envelope that was lost
    repeater = world.sender(b"a")
    repeater._notices = lambda: (_ for _ in ()).throw(fault)
    world.queue.clear()

    world.clock.advance(6_000)
    assert repeater.tick() == 1

    assert [envelope.payload for envelope in world.queue] == [b"a"]
    assert logged in caplog.messages


def test_a_frame_that_cannot_be_checked_is_checked_later(world, monkeypatch, caplog):
    repeater = world.sender(b"a")
    world.queue.clear()
    with monkeypatch.context() as patch:
        patch.setattr(FrameService, "status", lambda *_, **__: (_ for _ in ()).throw(Throttled("later")))
        world.clock.advance(6_000)
        assert repeater.tick() == 1
    assert "cannot be checked now, trying again later: later" in caplog.text
    assert repeater.tick() == 1
    assert world.queue == []
    world.clock.advance(40_000)
    repeater.tick()
    assert len(world.queue) == 1


class Picky:
    """A transport that never takes payloads that are bad."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.calls = 0

    def __call__(self, envelopes: Sequence[Envelope]) -> None:
        self.calls += 1
        bad = {envelope.index: "too long" for envelope in envelopes if envelope.payload == b"bad"}
        self._world.send([envelope for envelope in envelopes if envelope.index not in bad])
        if bad:
            raise EnvelopesRefused("never", reasons=bad)


def go_on(world: World, repeater: Repeater, minutes: int) -> Counter[bytes]:
    """Let time pass, in which all works but poison fails; returns how often each payload was tried."""
    tries: Counter[bytes] = Counter()

    def handle(delivery: Delivery) -> None:
        tries[delivery.payload] += 1
        if delivery.payload == b"poison":
            raise RuntimeError("bad")

    for _ in range(minutes):
        repeater.flush()
        repeater.tick()
        world.take(world.receiver(handle), most=1_000)
        world.process().reap()
        world.announce()
        world.clock.advance(60_000)
    return tries


def test_what_can_never_be_sent_is_set_aside_and_the_others_go_on(world, caplog):
    # Given two payloads that the queue never takes, among hundreds
    transport = Picky(world)
    payloads = [b"bad" if n in (3, 250) else b"%d" % n for n in range(600)]
    repeater = world.sender(*payloads, transport=transport, size=300)
    seen = go_on(world, repeater, 30)
    # Then all others are delivered, and no frame is kept for the two
    assert seen.keys() == set(payloads) - {b"bad"}
    assert transport.calls == 6
    assert [(one.payload, one.reason) for one in repeater.set_aside()] == [(b"bad", "too long")] * 2
    assert repeater.buffer.usage == BufferUsage(2, 6)
    assert repeater.tick() == 0
    assert "envelope 3 of frame" in caplog.text


def test_put_refuses_what_the_transport_can_never_send(world):
    class Checking(Picky):
        def check(self, payload: bytes, content_type: str) -> None:
            if payload == b"bad":
                raise InvalidRequest(f"{content_type} is never sent")

    repeater = world.repeater(transport=Checking(world))
    with pytest.raises(InvalidRequest, match="text/plain is never sent"):
        repeater.put(b"bad", "text/plain")
    repeater.put(b"good")
    assert repeater.buffer.usage.envelopes == 1


def test_put_refuses_what_is_not_bytes_of_a_content_type(world):
    with pytest.raises(InvalidRequest, match="a payload must be bytes, not str"):
        world.repeater().put("text")
    with pytest.raises(InvalidRequest, match="a content type must be text of 0 to 1024 characters"):
        world.repeater().put(b"", None)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ({"size": 0}, "size must be a whole number from 1 to"),
        ({"ttl": 59}, "ttl must be a whole number from 60 to"),
        ({"ttl": 365 * 86_400 + 1}, "ttl must be a whole number from 60 to"),
        ({"source": "x" * 257}, "source must be text of 0 to 256"),
        ({"destination": "\ud800"}, "destination has one half of a surrogate pair"),
        ({"reply_to": "x" * 257}, "reply_to must be text of 0 to 256"),
        ({"user_key": "x" * 257}, "user_key must be text of 0 to 256"),
    ],
)
def test_a_template_by_which_no_frame_can_be_opened_is_refused_at_once(world, template, why):
    with pytest.raises(InvalidRequest, match=f"the template's {why}"):
        Repeater(
            world.frames(), world.send, MemoryRepeatBuffer(), template=OpenFrame(**{"size": 10, **template})
        )


def test_a_transport_that_cannot_be_called_is_refused_at_once(world):
    with pytest.raises(InvalidRequest, match="transport must be a function, not str"):
        world.repeater(transport="https://sqs/work")


def every_other(world: World, repeater: Repeater, count: int) -> list[bytes]:
    """Send so many envelopes, of which every other one is lost; the others are handled."""
    for number in range(count):
        repeater.put(b"%d" % number)
    repeater.flush()
    lost = [envelope.payload for envelope in world.queue[1::2]]
    world.queue = world.queue[::2]
    while world.queue:
        world.take(world.receiver(lambda _: None), most=1_000)
    return lost


def test_everything_that_is_missing_is_repeated_however_many_pages_list_it(world):
    # Given a frame of which more ranges are missing than a page lists
    repeater = world.repeater(size=2_100)
    lost = every_other(world, repeater, 2_100)
    assert len(lost) > 1_000
    world.clock.advance(6_000)
    repeater.tick()
    assert [envelope.payload for envelope in world.queue] == lost


def test_what_a_page_lists_is_sent_even_if_the_next_page_cannot_be_read(world, monkeypatch):
    monkeypatch.setattr("fanin.client.frames.repeater.MAX_PAGE", 2)
    repeater = world.repeater()
    lost = every_other(world, repeater, 10)
    status = FrameService.status

    def busy(self: FrameService, frame_id: int, *, cursor: str | None = None, limit: int = 100) -> Frame:
        if cursor is not None:
            raise Throttled("later")
        return status(self, frame_id, limit=limit)

    monkeypatch.setattr(FrameService, "status", busy)
    world.clock.advance(6_000)
    assert repeater.tick() == 1
    assert [envelope.payload for envelope in world.queue] == lost[:2]


def test_a_frame_is_kept_while_any_page_lists_what_the_buffer_holds(world, monkeypatch):
    # Given a frame of which the first page lists only what was set aside
    monkeypatch.setattr("fanin.client.frames.repeater.MAX_PAGE", 1)
    repeater = world.repeater()
    lost = every_other(world, repeater, 4)
    repeater.buffer.set_aside(repeater.buffer.frames()[0], {1: "never"})
    world.clock.advance(6_000)
    assert repeater.tick() == 1
    assert [envelope.payload for envelope in world.queue] == lost[1:]
    # When all that is missing was set aside, then the frame is forgotten
    repeater.buffer.set_aside(repeater.buffer.frames()[0], {3: "never"})
    world.clock.advance(60_000)
    assert repeater.tick() == 0


def test_no_further_page_is_read_while_the_transport_fails(world, monkeypatch):
    monkeypatch.setattr("fanin.client.frames.repeater.MAX_PAGE", 1)
    repeater, asked = world.repeater(), []
    every_other(world, repeater, 10)
    status = FrameService.status

    def watched(self: FrameService, frame_id: int, **page: object) -> Frame:
        asked.append(page)
        return status(self, frame_id, **page)

    def down(_: object) -> None:
        raise ServiceUnavailable("no way")

    monkeypatch.setattr(FrameService, "status", watched)
    repeater._transport = down
    world.clock.advance(6_000)
    assert repeater.tick() == 1
    assert len(asked) == 1


def test_a_full_disk_stops_nothing_for_good(world, tmp_path, caplog):
    # Given a sender whose disk is full
    buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
    repeater, rounds = world.repeater(buffer, size=1_000), iter(range(20))
    limit_disk(buffer, 12)
    with suppress(BufferFull):
        while True:
            repeater.put(b"payload")
    kept = buffer.usage.envelopes
    # When it runs, Then it goes on without a frame, opening one only
    repeater.run(lambda: next(rounds) == 4)
    assert world.queue == []
    assert "no frame can be opened now, trying again later: there is no room" in caplog.text
    assert len({new.batch_id for _, new in world.memory.batches.changes}) == 1
    # When there is room again, Then everything is sent
    limit_disk(buffer, 10_000)
    repeater.run(lambda: next(rounds) == 8)
    assert len(world.queue) == kept
    buffer.close()


def test_notices_that_nobody_understands_are_ignored(world):
    repeater = world.sender(b"a")
    repeater._notices = lambda: [Notice("Complete Frame", 10**30), Notice("Frame Ended", -1)]
    assert repeater.tick() == 1


def test_what_a_repeater_does_unless_told_otherwise(world):
    # Given more payloads than a frame has
    now = 0.0
    repeater = Repeater(world.frames(), world.send, MemoryRepeatBuffer(), clock=lambda: now)
    for number in range(1_001):
        repeater.put(str(number).encode())
    repeater.flush()
    # Then frames have up to 1,000, and nothing is repeated before half of the first wait
    sizes = [len(list(group)) for _, group in groupby(world.queue, key=lambda one: one.frame)]
    assert sizes == [1_000, 1]
    world.queue.clear()
    now = 2.4
    assert (repeater.tick(), world.queue) == (2, [])
    # And all is, after the whole of it
    now = 5.1
    assert (repeater.tick(), len(world.queue)) == (2, 1_001)


def test_an_envelope_that_receivers_never_handle_is_set_aside(world, caplog):
    # Given an envelope on which every receiver fails, among others
    repeater = world.sender(b"a", b"poison", b"b", max_frames=3)
    assert go_on(world, repeater, 60)[b"poison"] > 3
    # Then the sender has given it up, and nobody tries it any more
    (aside,) = repeater.set_aside()
    assert aside.payload == b"poison"
    assert aside.reason.startswith("it was missing from 3 frames")
    assert "1 envelopes of frame" in caplog.text
    world.queue.clear()
    assert go_on(world, repeater, 30)[b"poison"] == 0
    # When it is put back, Then it has as many frames again
    repeater.buffer.put_back(aside.number)
    repeater.put(b"c")
    assert go_on(world, repeater, 60)[b"poison"] > 3
    assert [one.payload for one in repeater.set_aside()] == [b"poison"]


def test_an_outage_of_all_receivers_sets_nothing_aside(world):
    # Given receivers that are away for hours, in which many frames time out
    repeater = world.sender(b"a", b"b", max_frames=2)
    for _ in range(200):
        repeater.flush()
        repeater.tick()
        world.queue.clear()
        world.process().reap()
        world.announce()
        world.clock.advance(60_000)
    # When they are back, Then everything is delivered
    assert repeater.set_aside() == []
    assert go_on(world, repeater, 30).keys() == {b"a", b"b"}


def test_whoever_wants_it_repeats_poison_for_ever(world):
    repeater = world.sender(b"a", b"poison", max_frames=None)
    go_on(world, repeater, 120)
    assert repeater.set_aside() == []
    assert repeater.buffer.usage.envelopes == 1
    with pytest.raises(InvalidRequest, match="max_frames must be a whole number from 1"):
        world.repeater(max_frames=0)


class Time:
    now = 100.0


@pytest.fixture
def time() -> Time:
    return Time()


def schedule(time: Time, *frames: int) -> CheckSchedule:
    """A schedule whose waits are 10, 20, 40, 40 seconds."""
    return CheckSchedule(frames, Backoff(base=10, cap=40, fraction=lambda: 1.0), lambda: time.now)


def checks(found: CheckSchedule, time: Time, seconds: int) -> list[float]:
    """Let time pass by the second; at which times a frame was due, from now."""
    began, due = time.now, []
    for second in range(seconds):
        time.now = began + second
        due += [second for _ in found.due()]
    return due


def test_a_frame_is_due_after_waits_that_grow(time):
    found = schedule(time)
    found.add(7)
    assert checks(found, time, 160) == [10, 30, 70, 110, 150]


def test_a_wait_is_at_least_half_of_the_first(time):
    found = CheckSchedule([], Backoff(base=10, cap=40, fraction=lambda: 0.0), lambda: time.now)
    found.add(7)
    assert checks(found, time, 12) == [5, 10]


def test_a_frame_that_is_hastened_is_due_at_once_and_its_waits_begin_anew(time):
    found = schedule(time)
    found.add(7)
    found.add(8)
    assert checks(found, time, 31) == [10, 10, 30, 30]
    found.hasten(7)
    assert list(found.due()) == [7]
    found.hasten_all()
    assert list(found.due()) == [7, 8]
    assert checks(found, time, 22) == [20, 20]


def test_a_frame_that_is_forgotten_is_not_due(time):
    found = schedule(time, 7, 8)
    found.forget(7)
    found.forget(9)
    assert (len(found), 7 in found, 8 in found) == (1, False, True)
    assert list(found.due()) == [8]


def test_frames_may_be_forgotten_and_hastened_while_they_are_gone_through(time):
    found = schedule(time, 7, 8)
    for frame_id in found.due():
        found.hasten_all()
        found.forget(frame_id)
    assert len(found) == 0
