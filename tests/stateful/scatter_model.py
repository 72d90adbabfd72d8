"""What a scatter should be, in plain sets and dicts."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from fanin.app.ledger.reaper import EARLY_MS
from fanin.domain.batch import State
from fanin.domain.scatter import Scatter


class Face(NamedTuple):
    """What moves on the row of a scatter.

    Attributes:
        state: where it is in its life.
        partial: whether it ended without some.
        retries: how often the missing were sent to again.
        deadline: when that happens next, or the end; ms.
    """

    state: State
    partial: bool
    retries: int
    deadline: int


class Wish(NamedTuple):
    """What a caller asks for.

    Attributes:
        cars: recipients; None for the topic, which has all of them.
        correlation_id: the caller's own, or None.
        max_retries: how often the missing are sent to again.
        quorum: as in ``Scatter``.
        keyed: whether the caller gives a key, and comes back with it.
    """

    cars: tuple[int, ...] | None
    correlation_id: str | None = None
    max_retries: int = 0
    quorum: float | None = None
    keyed: bool = False

    def enough(self, cars: int) -> int | None:
        """Replies of so many cars that are enough."""
        if self.quorum is None:
            return None
        return math.ceil(self.quorum * cars) if self.quorum < 1 else min(int(self.quorum), cars)


@dataclass(eq=False)
class Plain:
    """One scatter. Recipients go by their numbers in it, from 0.

    Attributes:
        cars: number of a recipient → the car it is.
        timeout: seconds.
        quorum: replies that are enough.
        face: its row.
        expected: what the row may be after the call that was just made.
        stored: recipient → the payload that came first.
        done: who replied, or failed.
        failed: who cannot be reached.
        items: recipient → the item id under which it was asked.
        limping: its caller or its worker died, and what follows from what they did may have to wait for a
            deadline.
        unsettled: the same, or somebody who brought a reply died, and was not repeated yet.
    """

    batch_id: int
    correlation_id: str
    body: str
    cars: list[int]
    timeout: int
    max_retries: int
    quorum: int | None
    face: Face
    expected: set[Face] = field(default_factory=set)
    stored: dict[int, str] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    items: dict[int, str] = field(default_factory=dict)
    limping: bool = False
    unsettled: bool = False

    @property
    def live(self) -> bool:
        return not self.face.state.terminal

    @property
    def received(self) -> set[int]:
        return self.done - self.failed

    @property
    def missing(self) -> list[int]:
        return [number for number in range(len(self.cars)) if number not in self.done]

    @property
    def enough(self) -> bool:
        """Whether a quorum has replied, and not everybody is done anyway."""
        return self.quorum is not None and len(self.received) >= self.quorum and bool(self.missing)

    def settled(self, face: Face) -> Face:
        """What a row becomes as soon as somebody looks at what is done."""
        if face.state.terminal or (self.missing and not self.enough):
            return face
        return face._replace(state=State.COMPLETE, partial=bool(self.missing))

    def due(self, face: Face, now: int) -> Face:
        """What a row becomes when its deadline is looked at, but for what is settled by that."""
        if face.state.terminal or now < face.deadline - EARLY_MS:
            return face
        if face.retries < self.max_retries and not self.enough:
            later = max(now, face.deadline) + self.timeout * 1000
            return face._replace(retries=face.retries + 1, deadline=later)
        return face._replace(state=State.COMPLETE, partial=True)

    def rings(self, now: int, *, died: bool) -> None:
        """Its deadline is looked at, by one who may die over it."""
        self.expected = {self.due(self.settled(self.face), now)}
        if self.unsettled:  # the last words do not show everything that is done
            self.expected.add(self.due(self.face, now))
        if died:
            self.expected.add(self.face)

    def see(self, row: Face) -> None:
        """Take the row as it is, if it may be so after the call that was just made.

        Raises:
            AssertionError: it may not.
        """
        expected = self.expected or {self.face}
        possible = {self.settled(face) for face in expected}
        if self.unsettled:
            possible |= expected
        assert row in possible, f"{row} is none of {possible}: {self}"
        self.face = row
        self.expected = set()


@dataclass(eq=False)
class Start:
    """A call that starts a scatter; a repeat is the same one.

    Attributes:
        request: what is said.
        cars: recipients.
        enough: replies that are enough.
        key: the idempotency key.
        jobs: batch id and chunk of the worker's jobs that it has put on their queue.
        opened: the scatter, once it is there.
    """

    request: Scatter
    cars: list[int]
    enough: int | None
    key: str | None
    jobs: set[tuple[int, int]] = field(default_factory=set)
    opened: Plain | None = None
