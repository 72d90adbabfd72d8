"""What the behaviour suite needs of a service: the same on one in memory and on the deployed stack."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from fanin import ReceivedMessage, Tracker, names
from fanin.app.ports import Ports
from fanin.client.messages import read_message

T = TypeVar("T")


class Told(NamedTuple):
    """An event of the bus."""

    detail_type: str
    detail: dict[str, Any]


class World(Protocol):
    """A service, and time."""

    @property
    def tracker(self) -> Tracker:
        """A tracker of the service."""
        ...

    @property
    def ports(self) -> Ports:
        """Its stores, for a test that does by half what a process that died did."""
        ...

    def queue(self, *, channel: bool = False) -> str:
        """URL of a queue of the test's own."""
        ...

    def tracked_queue(self) -> str:
        """URL of a queue whose messages are given up after five receives, and their items failed."""
        ...

    def until(self, look: Callable[[], T], within: float = 20) -> T:
        """Let time pass until there is something to see, and return it; fails after so many seconds."""
        ...

    def idle(self, batch_id: int, seconds: int) -> None:
        """Let a batch be without activity for so long, and the reaper come by."""
        ...

    def events(self, batch_id: int) -> list[Told]:
        """What the bus was told of a batch so far."""
        ...

    def only_event(self, batch_id: int, within: float = 20) -> Told:
        """The event of the end of a batch, which comes in time and once."""
        ...


def ends(told: list[Told]) -> list[Told]:
    """Those events that tell of an end."""
    return [one for one in told if one.detail_type not in names.EARLY_TYPES.values()]


def take(world: World, url: str, count: int = 1) -> list[ReceivedMessage]:
    """Receive so many of the messages that come to a queue, and remove them; there may be more of them."""
    sqs, messages = world.tracker.sqs, []

    def receive() -> bool:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        messages.extend(answer.get("Messages", []))
        return len(messages) >= count

    world.until(receive)
    for message in messages:
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return [read_message(message) for message in messages]
