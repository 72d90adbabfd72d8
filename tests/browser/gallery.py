"""Something of everything that the console shows, and the addresses of all its pages."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from fanin import Done, Failure
from fanin.console.pages.heading import Heading
from fanin.console.rendering import error_key
from fanin.domain.buffer import FailedWork
from fanin.domain.directory import PutRoute, Register
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.frames import OpenFrame, Ticket
from fanin.domain.scatter import Recipient, Reply, Scatter
from fanin.domain.targets import Target, TargetType, When
from fanin.testing import InMemoryService

BILLION: Final = 1_000_000_000


@dataclass(frozen=True)
class Words:
    """The texts that callers choose, plain ones by default.

    Attributes:
        text: of reasons, keys, values, bodies: whatever may be any text.
        name: of what has a name with a syntax of its own.
    """

    text: str = "the row is not valid"
    name: str = "cars"
    pattern: dict[str, Any] = field(default_factory=lambda: {"source": ["orders"]})


class Gallery:
    """A service with something to see on every page.

    Args:
        service: gets all of it.
        words: the texts that callers would choose.
    """

    def __init__(self, service: InMemoryService, words: Words | None = None) -> None:
        self.service = service
        self.words = words or Words()
        self.tracker = service.tracker
        self.queue = service.queue("work", channel=True)
        self.batches = {
            "billion": self._billion(),
            "held": self._held(),
            "ended": self._ended(),
            "stalled": self._stalled(),
            "keyed": self._keyed(),
            "estimated": self.tracker.open(user_key="estimated", mode="estimated").batch_id,
        }
        self.scatter = self._scatter()
        self.frame = self._frame()
        self._patterns()

    def pages(self) -> dict[str, str]:
        """Address of each page that anybody may see, by a name."""
        billion, ended, name = (self.batches["billion"], self.batches["ended"], self.words.name)
        error = self.service.services.ledger.errors(ended).errors[0].error
        tabs = {f"tab {name or 'first'}": f"/batches/{ended}/{name}".rstrip("/") for name in Heading.tabs}
        return {
            "overview": "/",
            "batches": "/batches?state=complete",
            "billion": f"/batches/{billion}",
            "why of billion": f"/batches/{billion}/why",
            "missing of billion": f"/batches/{billion}/missing",
            **tabs,
            "held": f"/batches/{self.batches['held']}",
            "why of held": f"/batches/{self.batches['held']}/why",
            "stalled": f"/batches/{self.batches['stalled']}",
            "estimated": f"/batches/{self.batches['estimated']}",
            "picture": f"/batches/{billion}/picture",
            "picture, half-way": f"/batches/{billion}/picture?level=2&number=1",
            "picture of items": f"/batches/{billion}/picture?level=0&number=1",
            "failures of an error": f"/batches/{ended}/failures?error={error_key(error)}",
            "failure": f"/batches/{ended}/failures/0",
            "results": f"/batches/{self.batches['keyed']}/results",
            "item": f"/batches/{self.batches['keyed']}/items/0",
            "scatters": "/scatters",
            "scatter": f"/scatters/{self.scatter}",
            "frames": "/frames",
            "frame": f"/frames/{self.frame}",
            "buffers": "/buffers",
            "buffer": "/buffers/renders",
            "directory": "/directory",
            "topic": f"/directory/{name}",
            "registration": f"/directory/{name}/vin-1",
            "routes": "/routes",
            "route": "/routes/orders",
            "log": "/log",
        }

    def questions(self) -> dict[str, str]:
        """Address of each page that asks before it does something."""
        held, ended, stalled = (self.batches[name] for name in ("held", "ended", "stalled"))
        return {
            "close": f"/batches/{stalled}/actions/close",
            "cancel": f"/batches/{stalled}/actions/cancel",
            "redrive": f"/batches/{ended}/actions/redrive",
            "release": f"/batches/{held}/actions/release",
            "verify": f"/batches/{stalled}/actions/verify",
            "limits": f"/batches/{stalled}/actions/limits",
            "remove": f"/batches/{ended}/actions/remove",
            "redeliver": f"/batches/{ended}/actions/redeliver",
            "redrive what is listed": "/batches/actions/redrive?state=complete",
            "cancel what is listed": "/batches/actions/cancel?state=open",
            "limit": "/buffers/renders/actions/limit",
            "delete": "/routes/orders/actions/delete",
            "deregister": f"/directory/{self.words.name}/vin-1/actions/deregister",
        }

    def errors(self) -> dict[str, tuple[str, int]]:
        """Address of each kind of page that says why there is nothing to see, and its status."""
        return {
            "no such page": ("/nowhere", 404),
            "no such batch": ("/batches/1", 404),
            "no batch": ("/batches/x", 400),
            "no such state": ("/batches?state=lost", 400),
            "no such buffer": ("/buffers/absent", 404),
            "not possible": (f"/batches/{self.batches['ended']}/actions/close", 409),
        }

    def _texts(self) -> dict[str, Any]:
        return {"user_key": self.words.text[:256], "metadata": {self.words.text[:64]: self.words.text[:256]}}

    def _billion(self) -> int:
        batch = self.tracker.open(**self._texts(), totals=["rows", "bytes"], deadline=timedelta(hours=6))
        group = self.tracker.add(batch.batch_id, BILLION)
        self.tracker.ack([group[64 + at] for at in range(30)])
        self.tracker.fail([Failure(group[64 + 31 + at], self.words.text[:1000]) for at in range(5)])
        return batch.batch_id

    def _held(self) -> int:
        batch = self.tracker.open(on_failure="hold", **self._texts())
        items = list(self.tracker.add(batch.batch_id, 100))
        self.tracker.ack(items[20:])
        self.tracker.fail([self._failure(item) for item in items[:10]])
        return batch.batch_id

    def _ended(self) -> int:
        """A batch with failures, targets that could not be told, and a redrive of one failure."""
        refused = Target(TargetType.WEBHOOK, When.ANY, url="https://hooks.example.com/secret")
        told = Target(TargetType.SQS, queue_url=self.queue)
        with self.tracker.batch(**self._texts(), on_end=[told, refused], totals=["rows"]) as batch:
            items = list(batch.add(300))
        self.tracker.ack(items[8:])
        self.tracker.fail([self._failure(item) for item in items[:8]])
        self.tracker.redrive(batch.id, ranges=[(7, 8)])
        return batch.id

    def _failure(self, item: str) -> Failure:
        text = self.words.text
        attributes = {"row": MessageAttribute("Number", "7"), "said": MessageAttribute("String", text)}
        return Failure(item, text[:1000], KeptMessage(text, attributes), attempts=3, source=self.queue)

    def _stalled(self) -> int:
        batch = self.tracker.open(**self._texts(), stall_after=timedelta(seconds=60))
        self.tracker.ack(list(self.tracker.add(batch.batch_id, 60))[:40])
        self.service.advance(timedelta(minutes=6))
        return batch.batch_id

    def _keyed(self) -> int:
        """A batch whose items have keys and results."""
        text = self.words.text
        with self.tracker.batch(**self._texts(), results=True) as batch:
            items = batch.add(keys=[f"{text[:200]} {number}" for number in range(8)])
        self.tracker.ack([Done(one.item, result={text: text}) for one in items[:6]])
        self.tracker.fail([self._failure(items[6].item)])
        return batch.id

    def _scatter(self) -> int:
        text = self.words.text
        recipients = [Recipient(f"{text[:100]} {number}", self.queue) for number in range(5)]
        started = self.service.services.scatters.start(
            Scatter(text[:1000], recipients, correlation_id=text[:100], timeout=3_600, **self._texts())
        )
        items = sorted(_items(self.service, self.queue, started.batch.batch_id))
        self.service.services.scatters.reply([Reply(items[0], {text: text}), Reply(items[1], "here")])
        self.tracker.fail([Failure(items[2], text[:1000])])
        return started.batch.batch_id

    def _frame(self) -> int:
        text = self.words.text[:256]
        frame = self.tracker.frames.open(
            OpenFrame(100, source=text, destination=text, user_key=text, ttl=36_000)
        )
        claims = self.tracker.frames.claim([Ticket(frame.frame_id, index) for index in range(9)])
        self.tracker.ack([claim.item for claim in claims[:7]])
        return frame.frame_id

    def _patterns(self) -> None:
        buffers = self.service.services.buffers
        buffers.define("renders", 20)
        for number in range(12):
            buffers.put("renders", [f"{self.words.text[:100]} {number}"])
        taken = buffers.take("renders", most=5, wait=0)
        failed = [FailedWork(work.receipt, self.words.text[:1000]) for work in taken[:2]]
        buffers.done("renders", [], failures=failed)
        said = {self.words.text[:64]: self.words.text[:128]}
        for number in range(3):
            register = Register(self.words.name, f"vin-{number}", self.queue, said, 36_000)
            self.service.services.directory.register(register)
        route = PutRoute("orders", self.words.pattern, self.words.name, attributes=said)
        self.service.services.routing.put(route)


def _items(service: InMemoryService, queue: str, batch_id: int) -> Iterator[str]:
    """The items of a batch whose messages are in a queue."""
    while messages := service.sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    ).get("Messages"):
        for one in messages:
            item = one.get("MessageAttributes", {}).get("fanin-item", {}).get("StringValue", "")
            if item.startswith(f"{batch_id}:"):
                yield item
