"""Whom the use cases tell: queues of users, the queue of jobs, and those who wait for the end of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from fanin import names
from fanin.app.ports.events import Event
from fanin.domain.failures import MessageAttribute
from fanin.domain.targets import Target
from fanin.errors import Throttled


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
        ...

    def offer(self, messages: Sequence[Outgoing]) -> Offered:
        """Send messages in parallel, batched by queue, and say what became of each.

        The messages of a FIFO queue are sent in order.

        Only what is plainly temporary lets a message wait: throttling, a fault of the service, a lost
        connection, or credentials of this process that have expired. Any other refusal is final.
        """
        ...

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
        ...


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
        ...
