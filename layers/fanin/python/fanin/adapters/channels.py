"""Sending to queues on SQS: to users' own, which must carry fanin's tag, and to those of the service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from fanin import names
from fanin.adapters.aws import SLOW_DOWN, blames_content, error_code, meaning, once, translated
from fanin.adapters.backoff import Backoff
from fanin.adapters.forks import Threads
from fanin.app.ports.queues import Channels, Offered, Outgoing
from fanin.domain.directory import check_channel, is_fifo
from fanin.domain.failures import MessageAttribute
from fanin.domain.limits import MAX_QUEUE_BYTES, MAX_QUEUE_MESSAGES, chunks
from fanin.errors import ChannelRefused, FaninError, InvalidRequest, RequestTooLarge
from fanin.wire.json_text import compact

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

GONE: Final = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "InvalidAddress"}
DENIED: Final = {"AccessDenied", "AccessDeniedException"}
_OURS: Final = {"ExpiredToken", "InvalidSecurity", "RequestExpired", "SignatureDoesNotMatch"}
_SENT_TO: Final = (names.CHANNEL_TAG,)
_REDRIVEN: Final = (names.CHANNEL_TAG, names.TRACKED_TAG)
_SETTLES: Final = 1.0
"""Seconds after which SQS shows a queue that was made or tagged just before."""


class SqsChannels(Channels):
    """A ``Channels``.

    Args:
        client: makes the client, when first used.
        threads: how many requests may run at a time.
        backoff: waits between tries.
        strict: raise the errors of a queue, which else are answers for its messages.
    """

    def __init__(
        self,
        client: Callable[[], SQSClient] | None = None,
        *,
        threads: int = 16,
        backoff: Backoff | None = None,
        strict: bool = False,
    ) -> None:
        self._client = once(client, "sqs", connections=threads)
        self._threads = Threads(threads, "channels", self._client)
        self._backoff = backoff or Backoff()
        self._strict = strict

    def resolve(self, channel: str, *, new: bool = True, again: bool = False) -> str:
        if not again:
            check_channel(channel)
        allowing = _REDRIVEN if again else _SENT_TO
        try:
            return self._look(channel, allowing)
        except ChannelRefused:
            if not new:
                raise
        self._backoff.sleep(_SETTLES)
        return self._look(channel, allowing)

    def _look(self, channel: str, allowing: Sequence[str]) -> str:
        def refusal(error: ClientError) -> FaninError | None:
            if (code := error_code(error)) in GONE | DENIED:
                return _refused(channel, allowing)
            if not _is_final(error):
                return None
            return InvalidRequest(
                f"SQS does not accept the channel {channel[:200]!r} ({code});"
                " give the URL or ARN of a standard queue"
            )

        with translated(refusal):
            url = url_of(self._client(), channel) if channel.startswith("arn:") else channel
            tags = self._client().list_queue_tags(QueueUrl=url).get("Tags", {})
        if not tags.keys() & set(allowing):
            raise _refused(channel, allowing)
        return url

    def offer(self, messages: Sequence[Outgoing]) -> Offered:
        return _together(self._threads.map(partial(self._send_in_order, messages), _lines(messages)))

    def _send_in_order(self, messages: Sequence[Outgoing], groups: Iterable[Sequence[int]]) -> Offered:
        """Send requests one after the other; where messages wait, those behind them wait, too."""
        offered = Offered({}, {})
        for group in groups:
            held = next(iter(offered.waiting.values()), None)
            sent = self._send(messages, group) if held is None else Offered({}, dict.fromkeys(group, held))
            offered = _together((offered, sent))
        return offered

    def _send(self, messages: Sequence[Outgoing], group: Sequence[int]) -> Offered:
        refused: dict[int, str] = {}
        waiting, url = dict.fromkeys(group, ""), messages[group[0]].channel
        for _ in self._backoff:
            entries = [_entry(place, messages[place]) for place in waiting]
            try:
                answer = self._client().send_message_batch(QueueUrl=url, Entries=entries)
            except Exception as error:
                if self._strict:
                    raise
                if isinstance(error, ClientError) and _is_final(error):
                    if len(waiting) > 1 and blames_content(error_code(error)):
                        # One of them is at fault for the request.
                        alone = [self._send(messages, [place]) for place in waiting]
                        return _together([Offered(refused, {}), *alone])
                    why = f"the queue refuses messages ({error_code(error)})"
                    return Offered(refused | dict.fromkeys(waiting, why), {})
                waiting = dict.fromkeys(waiting, str(error))
                if not isinstance(error, ClientError) or error_code(error) not in SLOW_DOWN:
                    break  # botocore has tried again already
            else:
                _sift(answer, refused, waiting)
                if not waiting:
                    break
        return Offered(refused, waiting)


def url_of(client: SQSClient, arn: str) -> str:
    """The URL of the queue of an ARN."""
    *_, account, name = arn.split(":")
    return client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]


def _sift(answer: Mapping[str, Any], refused: dict[int, str], waiting: dict[int, str]) -> None:
    """Move the messages that SQS sent or refused, according to its answer, out of ``waiting``."""
    for sent in answer.get("Successful", []):
        waiting.pop(int(sent["Id"]), None)
    for failed in answer.get("Failed", []):
        place, why = int(failed["Id"]), failed.get("Message", failed["Code"])
        if failed["SenderFault"] and failed["Code"] not in SLOW_DOWN:
            waiting.pop(place, None)
            refused[place] = why
        else:
            waiting[place] = why


def _is_final(error: ClientError) -> bool:
    """Whether a queue's refusal is permanent: neither temporary nor caused by this process itself.

    AWS has more codes than can be listed here, for example for encryption keys, so an unknown one is final.
    """
    code = error_code(error)
    return code in GONE | DENIED or (code not in _OURS and meaning(error) is None)


def _together(offered: Iterable[Offered]) -> Offered:
    refused: dict[int, str] = {}
    waiting: dict[int, str] = {}
    for one in offered:
        refused |= one.refused
        waiting |= one.waiting
    return Offered(refused, waiting)


def _lines(messages: Sequence[Outgoing]) -> list[list[list[int]]]:
    """Group the places of messages into requests, each to one channel; those to a FIFO queue stay in line."""

    def size(place: int) -> int:
        return _size(messages[place])

    places: dict[str, list[int]] = {}
    for place, message in enumerate(messages):
        places.setdefault(message.channel, []).append(place)
    lines: list[list[list[int]]] = []
    for channel, of_channel in places.items():
        groups = chunks(of_channel, max_items=MAX_QUEUE_MESSAGES, size_of=size, max_bytes=MAX_QUEUE_BYTES)
        lines += [list(groups)] if is_fifo(channel) else [[group] for group in groups]
    return lines


def _size(message: Outgoing) -> int:
    """Bytes of a message as SQS counts them: body, and name, type and value of each attribute."""
    return _bytes(message.body) + sum(
        _bytes(name) + _bytes(kind) + (len(value) if isinstance(value, bytes) else _bytes(value))
        for name, (kind, value) in _attributes(message).items()
    )


def _attributes(message: Outgoing) -> dict[str, MessageAttribute]:
    """The attributes with their types, without empty ones, which SQS refuses."""
    return {
        name: value if isinstance(value, MessageAttribute) else MessageAttribute("String", value)
        for name, value in message.attributes.items()
        if value
    }


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _entry(index: int, message: Outgoing) -> Any:
    attributes = {
        name: {"DataType": kind, "BinaryValue" if isinstance(value, bytes) else "StringValue": value}
        for name, (kind, value) in _attributes(message).items()
    }
    entry = {"Id": str(index), "MessageBody": message.body, "MessageAttributes": attributes}
    if message.group is not None:
        entry["MessageGroupId"] = message.group
    if message.once is not None and is_fifo(message.channel):
        entry["MessageDeduplicationId"] = message.once
    return entry


def _refused(channel: str, allowing: Sequence[str]) -> ChannelRefused:
    return ChannelRefused(
        f"{channel[:200]!r} is not a queue that fanin may use: it must exist and carry the tag"
        f" {' or '.join(allowing)}"
    )


class SqsQueue:
    """Sends JSON objects to one queue of the service.

    Args:
        url: gives the URL of the queue, at each call; what it raises is raised there.
        client: makes the client, when first used.
        backoff: waits between tries.
    """

    def __init__(
        self,
        url: Callable[[], str],
        client: Callable[[], SQSClient] | None = None,
        *,
        backoff: Backoff | None = None,
    ) -> None:
        self._url = url
        self._channels = SqsChannels(client, backoff=backoff, strict=True)

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:
        """Send messages; those that the queue did not accept are sent again.

        Raises:
            Throttled: the queue did not accept some messages in all tries; the others were sent.
            RequestTooLarge: a message is over 256 KB, or the queue will never accept it.
        """
        url = self._url()
        with translated():
            answers = self._channels.send([Outgoing(url, _body(message), {}) for message in messages])
        if why := next(filter(None, answers), None):
            raise RequestTooLarge(f"the queue refuses a message, change it: {why}")


def _body(message: Mapping[str, object]) -> str:
    body = compact(message)
    if (size := _bytes(body)) > MAX_QUEUE_BYTES:
        raise RequestTooLarge(
            f"a message of {size} bytes is over the {MAX_QUEUE_BYTES} that a queue takes; split it"
        )
    return body
