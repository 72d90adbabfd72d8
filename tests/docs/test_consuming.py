"""docs/how-to/consuming.md runs, and stops."""

import os
import signal
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from fanin import ReceivedMessage, Tracker
from fanin.testing import InMemoryService
from tests.docs import pages

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture(params=SIGNALS, ids=lambda number: number.name)
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    before = {one: signal.getsignal(one) for one in SIGNALS}
    yield request.param
    for one, handler in before.items():
        signal.signal(one, handler)


def test_a_signal_lets_the_consumer_finish_what_it_has(
    number: signal.Signals, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a queue of more messages than one poll receives
    service = InMemoryService()
    queue_url = service.queue("rows")
    with service.tracker.batch() as batch:
        batch.send(queue_url, [str(n) for n in range(25)], workers=1)

    # When the signal comes while the third message is handled
    def import_row(message: ReceivedMessage) -> None:
        if message.body == "2":
            os.kill(os.getpid(), number)

    (example,) = pages.code("how-to/consuming.md")
    monkeypatch.setenv("QUEUE_URL", queue_url)
    monkeypatch.setattr(Tracker, "from_env", lambda: service.tracker)
    monkeypatch.setitem(sys.modules, "shop", SimpleNamespace(import_row=import_row))
    exec(compile(example, "docs/how-to/consuming.md", "exec"), {})  # noqa: S102

    # Then the messages of that poll are done, and no other was received
    assert capsys.readouterr().out == "stopped after 10 messages\n"
    assert service.tracker.status(batch.id, exact=True).done_min == 10
    assert service.tracker.consumer(queue_url, lambda _: None, wait=0).poll() == 10
