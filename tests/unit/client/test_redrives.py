"""Following a redrive until it is finished."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fanin.client.diagnostics import DiagnosticCalls
from fanin.domain.redrives import Redrive, RedriveState, Redriving, Redrivings
from fanin.errors import Throttled

BEGUN = Redriving("a/0", 7, 8, RedriveState.RUNNING, items=3)


class Service:
    """A service whose redrive goes on as a script says."""

    def __init__(self, *seen: Redriving | Exception) -> None:
        self.pressed = 0
        self.seen = list(seen)

    def redrive(self, batch_id: int, request: Redrive | None = None) -> Redriving:
        self.pressed += 1
        # Pressed after the end, it would find nothing.
        return BEGUN if self.pressed == 1 else Redriving("a/1", batch_id, None, RedriveState.FINISHED)

    def redrives(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Redrivings:
        found = self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]
        if isinstance(found, Exception):
            raise found
        return Redrivings((replace(found, name="other"), found))


class Time:
    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> int:
        return int(self.at * 1000)

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


def calls(service: Service, time: Time) -> DiagnosticCalls:
    found = DiagnosticCalls()
    found.services = SimpleNamespace(redrives=service)
    found.clock = time
    return found


def test_it_waits_until_the_worker_has_finished():
    done = replace(BEGUN, state=RedriveState.FINISHED, items=9)
    service = Service(BEGUN, Throttled("busy"), replace(BEGUN, items=6), done)
    shown: list[int] = []

    found = calls(service, Time()).redrive(7, progress=lambda one: shown.append(one.items))

    assert (found, service.pressed) == (done, 1)
    assert shown == [3, 3, 3, 6]


def test_it_presses_again_where_nothing_moves():
    service, time = Service(BEGUN), Time()
    done = replace(BEGUN, state=RedriveState.FINISHED)

    def finish(_: Redriving) -> None:
        if service.pressed == 2:
            service.seen[:] = [done]

    assert calls(service, time).redrive(7, progress=finish) == done
    assert service.pressed == 2
    assert 150 <= time.at < 165


def test_it_looks_more_and_more_rarely_until_something_moves():
    time, moved = Time(), replace(BEGUN, items=6)
    service = Service(*[BEGUN] * 6, moved, moved, replace(BEGUN, state=RedriveState.FINISHED))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        time.at += seconds

    time.sleep = sleep
    calls(service, time).redrive(7)
    assert slept == [0.25, 0.5, 1, 2, 4, 5, 5, 0.25, 0.5]


@pytest.mark.parametrize(("dry_run", "wait"), [(False, False), (True, True)])
def test_it_returns_at_once(dry_run, wait):
    assert calls(Service(BEGUN), Time()).redrive(7, dry_run=dry_run, wait=wait) == BEGUN
