"""Guaranteed delivery: what an envelope costs, from the opening of its frame to its completion."""

from bench.figures import Figure
from bench.world import World
from fanin.app.frames import FrameService
from fanin.domain.frames import Hold, OpenFrame, Ticket

SIZES = (64, 1_000, 10_000)
AT_MOST = 2.04


def envelopes() -> list[Figure]:
    """Each envelope is claimed and acknowledged alone, by a process that knows the frame."""
    return [_measure(size) for size in SIZES]


def _measure(size: int) -> Figure:
    world = World()
    receiver = world.process()
    frames = FrameService(receiver)
    with world.spending() as spent:
        frame = frames.open(OpenFrame(size, "orders", "billing"))
        for index in range(size):
            (claim,) = frames.claim([Ticket(frame.frame_id, index)])
            if claim.hold is not Hold.CLAIMED:
                raise AssertionError(f"the claim should be the first one, but its outcome is {claim.hold}")
            receiver.mark([claim.item]).whole()
    world.check_complete()
    return Figure(
        "writes an envelope, claimed and acknowledged one at a time",
        spent.writes / size,
        at_most=AT_MOST,
        note=f"worst of frames of {', '.join(f'{n:,}' for n in SIZES)}: {size:,}; frame and end included",
    )
