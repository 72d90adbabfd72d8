"""Sending from a repeat buffer: what was sent, what failed, and what is set aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from fanin.client.frames.envelope_sender import EnvelopeSender, Sending
from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.repeat_buffer import MemoryRepeatBuffer
from fanin.errors import EnvelopesRefused, InvalidRequest, ServiceUnavailable, Throttled


class Wire:
    """A transport that raises for envelopes with these indices, as it was told to."""

    def __init__(self, **errors: Exception) -> None:
        self._errors = {int(name.removeprefix("at_")): error for name, error in errors.items()}
        self.calls: list[int] = []
        self.sent: list[int] = []

    def __call__(self, envelopes: Sequence[Envelope]) -> None:
        self.calls.append(len(envelopes))
        for envelope in envelopes:
            if envelope.index in self._errors:
                raise self._errors[envelope.index]
        self.sent += [envelope.index for envelope in envelopes]


def filled(count: int) -> MemoryRepeatBuffer:
    buffer = MemoryRepeatBuffer()
    for number in range(count):
        buffer.put(b"%d" % number)
    buffer.assign(7, count)
    return buffer


def test_a_frame_is_sent_in_hundreds() -> None:
    wire = Wire()
    sender = EnvelopeSender(wire, filled(250))
    assert sender.send(7, [(0, 3), (5, 999)]) == Sending(held=True, failed=False)
    assert wire.calls == [100, 100, 48]
    assert wire.sent == [0, 1, 2, *range(5, 250)]


def test_what_the_buffer_does_not_hold_is_not_sent() -> None:
    wire = Wire()
    assert EnvelopeSender(wire, filled(3)).send(8, [(0, 3)]) == Sending(held=False, failed=False)
    assert wire.calls == []


@pytest.mark.parametrize("error", [Throttled("busy"), ServiceUnavailable("no way"), OSError("cut off")])
def test_a_transport_that_fails_is_not_tried_with_the_rest(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    wire = Wire(at_120=error)
    assert EnvelopeSender(wire, filled(300)).send(7, [(0, 300)]) == Sending(held=True, failed=True)
    assert wire.calls == [100, 100]
    assert "100 envelopes of frame 7 from index 100 were not sent, repeating them later: " in caplog.text
    assert str(error) in caplog.text


@pytest.mark.parametrize("error", [InvalidRequest("odd"), ZeroDivisionError()], ids=["refusal", "defect"])
def test_an_envelope_that_breaks_the_transport_fails_alone(error: Exception) -> None:
    wire = Wire(at_2=error)
    assert EnvelopeSender(wire, filled(5)).send(7, [(0, 5)]) == Sending(held=True, failed=False)
    assert sorted(wire.sent) == [0, 1, 3, 4]


def test_what_is_refused_is_set_aside_with_its_reason() -> None:
    buffer = filled(3)
    wire = Wire(at_1=EnvelopesRefused("never", reasons={1: "too long"}))
    assert EnvelopeSender(wire, buffer).send(7, [(0, 3)]) == Sending(held=True, failed=False)
    assert [(one.payload, one.reason) for one in buffer.aside()] == [(b"1", "too long")]


def test_ranges_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def ranges() -> Iterator[tuple[int, int]]:
        for start in (0, 100, 200):
            taken.append(start)
            yield start, start + 100

    EnvelopeSender(Wire(at_0=Throttled("busy")), filled(300)).send(7, ranges())
    assert taken == [0, 100]
