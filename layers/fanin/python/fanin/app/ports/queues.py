"""The queues of buffers; and queues as seen from outside: who receives from them, and how that goes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from fanin import names
from fanin.app.ports.events import Event
from fanin.domain.failures import MessageAttribute
from fanin.domain.targets import Target
from fanin.errors import Throttled


class Received(NamedTuple):
    """A message received from a queue; until its visibility timeout, other consumers do not get it.

    Attributes:
        handle: receipt handle of this delivery; ``remove`` takes it.
        body: text.
        attributes: string attributes.
        sent_at: when it was sent, ms.
    """

    handle: str
    body: str
    attributes: Mapping[str, str]
    sent_at: int


class QueueState(NamedTuple):
    """Settings and figures of a queue.

    Attributes:
        retention: seconds until the queue drops a message.
        in_flight: messages received and not removed, approximately.
    """

    retention: int
    in_flight: int


class Queues(Protocol):
    """The queues of buffers: created by the service, or the user's own with the channel tag."""

    def create(self, name: str, born: int) -> str:
        """Create the queue of a buffer, unless it exists, and return its URL.

        Args:
            name: of the buffer.
            born: id of the buffer's first batch. It makes the queue's name unique, so that a slow call that
                deletes a buffer's queue never deletes that of a later buffer of the same name.
        """

    def delete(self, queue: str) -> None:
        """Delete a queue, if it exists."""

    def receive(self, queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        """Receive messages, waiting until the first arrives.

        Args:
            queue: URL.
            most: messages, at most 10.
            wait: seconds.
            visibility_timeout: seconds until others may get the messages; None for the queue's own.

        Raises:
            ChannelRefused: the queue is gone, or cannot be received from.
        """

    def remove(self, queue: str, handles: Sequence[str]) -> None:
        """Remove messages; those already gone, or received again by another consumer, are left alone."""

    def state(self, queue: str) -> QueueState:
        """Read the state of a queue; raises ChannelRefused like ``receive``."""


class Figures(NamedTuple):
    """Figures and settings of a queue. Its counts are approximate, and may be a minute old.

    Attributes:
        visible: messages that can be received.
        in_flight: messages that were received, and are neither deleted nor visible again.
        delayed: messages that cannot be received yet.
        retention: seconds until the queue drops a message.
        dead_letters: ARN of its dead-letter queue; empty if it has none.
        max_receives: how often a message is received before it goes there; 0 if it has none.
    """

    visible: int
    in_flight: int
    delayed: int
    retention: int
    dead_letters: str = ""
    max_receives: int = 0

    @property
    def empty(self) -> bool:
        return not (self.visible or self.in_flight or self.delayed)


class QueueMapping(NamedTuple):
    """An event source mapping of a queue.

    Attributes:
        function: name of the function.
        enabled: whether Lambda polls the queue for it.
        state: as Lambda names it, such as ``Disabled``.
        mapping: id of the mapping; empty if it is not known.
    """

    function: str
    enabled: bool
    state: str
    mapping: str = ""


class FunctionTrouble(NamedTuple):
    """What went wrong with a function in the last minutes.

    Attributes:
        function: its name.
        throttles: invocations that Lambda refused.
        errors: invocations that failed.
        minutes: how long that is.
    """

    function: str
    throttles: int
    errors: int
    minutes: int


@dataclass(frozen=True, slots=True)
class QueueReport:
    """What could be seen of a queue.

    Attributes:
        queue: its URL.
        exists: False if SQS says that there is no such queue.
        figures: None if they could not be read.
        dead: messages in its dead-letter queue; None if that could not be read, or it has none.
        consumers: None if they could not be listed.
        troubles: of the consumers' functions; None if they could not be read.
        unseen: what could not be read and why, such as ``its figures (AccessDenied)``.
    """

    queue: str
    exists: bool = True
    figures: Figures | None = None
    dead: int | None = None
    consumers: tuple[QueueMapping, ...] | None = None
    troubles: tuple[FunctionTrouble, ...] | None = None
    unseen: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The queue's name, the last part of its URL."""
        return self.queue.rpartition("/")[2]


class QueueInspection(Protocol):
    """Looks at queues. It changes nothing, and raises nothing: what cannot be read is said in the report."""

    def look(self, queues: Collection[str]) -> list[QueueReport]:
        """Look at queues, by their URLs, all at a time; at most four requests for each."""


class Outgoing(NamedTuple):
    """A message for a channel.

    Attributes:
        channel: queue URL.
        body: text.
        attributes: at most ten; a plain text is a string attribute.
        group: message group; None for none.
        once: what a FIFO queue knows a repeat of this message by; None for none.
    """

    channel: str
    body: str
    attributes: Mapping[str, str | MessageAttribute]
    group: str | None = None
    once: str | None = None


class Offered(NamedTuple):
    """What became of messages, by their positions; those in neither mapping were sent.

    Attributes:
        refused: messages that their queue will never take, and why.
        waiting: messages that their queue did not take for now, and why; send them again.
    """

    refused: Mapping[int, str]
    waiting: Mapping[int, str]

    def answers(self, messages: int) -> list[str | None]:
        """For each of so many messages None, or why it was refused.

        Raises:
            Throttled: some messages wait.
        """
        if self.waiting:
            why = next(iter(self.waiting.values()))
            raise Throttled(
                f"queues did not accept {len(self.waiting)} messages ({why}); try again later", retry_after=1
            )
        return [self.refused.get(place) for place in range(messages)]


class Channels(Protocol):
    """Users' queues: of registered instances, of recipients, of reply channels.

    Queues are independent: the answer of one affects only its own messages.
    """

    def resolve(self, channel: str, *, new: bool = True, again: bool = False) -> str:
        """The URL of a queue that is given by URL or ARN, if fanin may use it.

        Args:
            channel: URL or ARN.
            again: whether messages that came from a queue are to be sent again: then the queue may be a FIFO
                queue, and the tag ``fanin:tracked`` will do.
            new: whether the queue may have been made or tagged a moment ago. SQS shows that a second later,
                so a queue that is refused is looked at once more.

        Raises:
            ChannelRefused: the queue does not exist, is a FIFO queue, or does not carry the tag
                that it needs.
            InvalidRequest: SQS refuses to describe the queue for another reason.
        """

    def offer(self, messages: Sequence[Outgoing]) -> Offered:
        """Send messages in parallel, batched by queue, and say what became of each.

        The messages of a FIFO queue are sent in order.

        Only what is plainly temporary lets a message wait: throttling, a fault of the service, a lost
        connection, or credentials of this process that have expired. Any other refusal is final.
        """

    def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        """The same, for a caller who sends all of them again if some wait.

        Returns:
            For each message None, or the reason why its queue will never take it.

        Raises:
            Throttled: a queue kept refusing some messages for now; send all of them again.
        """
        return self.offer(messages).answers(len(messages))


class Jobs(Protocol):
    """A queue of jobs for a function of the service."""

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:
        """Put jobs on the queue.

        Raises:
            Throttled: the queue did not take some of them; send all of them again.
        """


class ChannelNotice(NamedTuple):
    """What a target is told.

    Attributes:
        event: as it is on the bus.
        succeeded: whether the batch ended complete and no item failed; or has come to a milestone.
    """

    event: Event
    succeeded: bool

    @property
    def early(self) -> bool:
        """Whether it tells of something before the end."""
        return self.event.detail_type in names.EARLY_TYPES.values()


class Callbacks(Protocol):
    """Calls back targets of all types but queues, which are sent to like any channel."""

    def call(self, target: Target, notice: ChannelNotice) -> None:
        """Tell a target; may be repeated.

        A target that waits no more, because it was told, was stopped or is past its time, counts as told.

        Raises:
            TargetRefused: the target will never take it.
            FaninError: it did not take it now. No message names the token or the path of the URL.
        """
