"""The world of the scatter machine: its processes, its stores as they are, and what must be true of both."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fanin import names
from fanin.adapters.memory import FixedClock, Memory
from fanin.app.directory.service import DirectoryService
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.correlation import GRACE_MS, NAMESPACE
from fanin.app.scatters.records import reply_name
from fanin.app.scatters.replies import namespace
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Patterns
from fanin.domain.batch import Batch, Kind, State
from fanin.domain.directory import Register
from fanin.domain.scatter import Recipient, ReplyReceipt, Scatter
from fanin.domain.tree import Tree
from tests.stateful.fuse import Fuse
from tests.stateful.model import Model, ordinal_of
from tests.stateful.scatter_model import Face, Plain, Start, Wish
from tests.stateful.scheduler import Crash

CARS = 7
TIMEOUT = 20
TOPIC = "cars"
REPLY_TO = "https://sqs/replies"
Said = list[tuple[Plain, int, str]]


def channel(car: int) -> str:
    return f"https://sqs/{car}"


class ScatterWorld:
    """Stores in memory, processes that may die over a call, and a model of each scatter beside them.

    Attributes:
        plain: batch id → the model of a scatter.
        ghosts: correlation id → the call whose caller died, and until when the id is kept for them; ms.
        unsure: calls with a key whose callers died, and will come back.
        inbox: recipients that got a message, and so know what to reply to.
        owed: replies that somebody died over, and that will come again.
        ringing: alarms that somebody died over.
        told: batch id → the figures of its event.
    """

    width = 2

    def __init__(self) -> None:
        super().__init__()
        self.fuse = Fuse()
        self.clock = FixedClock()
        self.memory = Memory(tree=Tree(self.width), clock=self.clock, on_call=self.fuse.on_call)
        ports = self.memory.ports()
        self.ports = replace(ports, defaults=replace(ports.defaults, reply_to=REPLY_TO))
        self.raw = Model()
        self.raw.watch(self.memory)
        self.old = self.process()
        self.plain: dict[int, Plain] = {}
        self.ghosts: dict[str, tuple[Start, int]] = {}
        self.unsure: list[Start] = []
        self.inbox: list[tuple[Plain, int]] = []
        self.seen = dict.fromkeys(range(CARS), 0)
        self.owed: list[Said] = []
        self.ringing: list[int] = []
        self.told: dict[int, Any] = {}
        self.announced = self.healed = self.calls = 0
        for car in range(CARS):
            self.memory.channels.queues[channel(car)] = []
            DirectoryService(self.ports).register(Register(TOPIC, f"{car}", channel(car), lease=2_592_000))

    def process(self) -> LedgerService:
        """A process that starts now."""
        return LedgerService(self.ports, Patterns(self.ports))

    def run(self, die_in: int | None, fresh: bool, call: Callable[[LedgerService], Any]) -> tuple[bool, Any]:
        """Make a call; whether its process died over it, and the answer."""
        ledger = self.process() if fresh else self.old
        try:
            return False, self.fuse.burn(die_in, lambda: call(ledger))
        except Crash:
            if not fresh:
                self.old = self.process()
            return True, None

    # What is there, read without the code under test.

    def rows(self) -> dict[int, Batch]:
        return self.memory.batches._rows

    def held(self) -> dict[str, int]:
        """The correlation ids that are taken."""
        namespace = self.memory.directory._namespaces.get(NAMESPACE, {})
        return {name: record.value["batch_id"] for name, record in namespace.items()}

    def stored_of(self, plain: Plain) -> dict[int, str]:
        namespaces = self.memory.records._namespaces
        return {
            number: record.value["payload"]
            for number in range(len(plain.cars))
            for record in [namespaces.get(namespace(plain.batch_id, number), {}).get(reply_name(number))]
            if record is not None
        }

    def failed_of(self, plain: Plain) -> set[int]:
        words = self.memory.words._failed.items()
        return {
            key.number * self.width + bit
            for key, mask in words
            for bit in range(self.width)
            if (key.batch_id, key.level) == (plain.batch_id, 0) and mask >> bit & 1
        }

    def there(self, car: int) -> bool:
        return channel(car) in self.memory.channels.queues

    def open(self, car: int) -> bool:
        return self.there(car) and channel(car) not in self.memory.channels.refusing

    def ended(self) -> list[Batch]:
        """The rows of ends that were not told of."""
        changes = self.memory.batches.changes
        ends = [new for old, new in changes if new.state.terminal and not (old and old.state.terminal)]
        return ends[self.announced :]

    def overdue(self) -> Iterator[Plain]:
        at, due = self.clock.at, self.memory.batches._due
        return (p for p in self.plain.values() if p.live and due[p.batch_id] < at > p.face.deadline + 60_000)

    def silent(self) -> list[tuple[Plain, int]]:
        return [(plain, number) for plain, number in self.inbox if number not in plain.done]

    def start_of(self, wish: Wish) -> Start:
        """A call that starts a scatter: its request names only queues that are there, the topic all."""
        cars = list(range(CARS)) if wish.cars is None else [car for car in wish.cars if self.open(car)]
        self.calls += 1
        request = Scatter(
            f"report {self.calls}!",
            [] if wish.cars is None else [Recipient(f"{car}", channel(car)) for car in cars],
            topic=TOPIC if wish.cars is None else None,
            correlation_id=wish.correlation_id,
            timeout=TIMEOUT,
            max_retries=wish.max_retries,
            quorum=wish.quorum,
        )
        return Start(request, cars, wish.enough(len(cars)), f"key {self.calls}" if wish.keyed else None)

    def opened(self, start: Start, batch_id: int, died: bool) -> Plain:
        """A scatter is there; its caller may have died over it."""
        request = start.request
        (held,) = (name for name, holder in self.held().items() if holder == batch_id)
        assert request.correlation_id in {None, held}
        assert self.rows()[batch_id].items == len(start.cars)
        face = Face(State.CLOSED, partial=False, retries=0, deadline=self.clock.at + TIMEOUT * 1000)
        plain = Plain(
            batch_id, held, request.body, start.cars, TIMEOUT, request.max_retries, start.enough, face
        )
        plain.limping = plain.unsettled = died
        self.plain[batch_id] = start.opened = plain
        return plain

    def alive(self, start: Start) -> bool:
        """Whether a caller's id is taken: by a scatter that lives, or by one that may still be opened."""
        wanted = start.request.correlation_id
        ghost, until = self.ghosts.get(wanted or "", (start, 0))
        lives = any(plain.live for plain in self.plain.values() if plain.correlation_id == wanted)
        return lives or (until > self.clock.at and (ghost is not start or start.key is None))

    def haunt(self, start: Start) -> None:
        """A caller died, maybe between taking the id and opening the batch."""
        wanted = start.request.correlation_id
        if wanted is not None and self.held().get(wanted, 0) not in self.rows().keys() | {0}:
            since = self.memory.directory._namespaces[NAMESPACE][wanted].value["created_at"]
            _, until = self.ghosts.get(wanted, (start, 0))
            if until < since + GRACE_MS:
                self.ghosts[wanted] = start, since + GRACE_MS

    # What must be true of an answer, and of what was sent.

    def read_inboxes(self) -> list[tuple[Plain, int]]:
        """What came to the cars since the last look: whom it names; each always by the same id."""
        found = []
        for car in range(CARS):
            queue = self.memory.channels.queues.get(channel(car), [])
            for message in queue[self.seen[car] :]:
                item = message.attributes[names.ITEM_ATTRIBUTE]
                batch_id, number = ordinal_of(item)
                plain = self.plain[batch_id]
                assert plain.cars[number] == car
                assert plain.items.setdefault(number, item) == item
                assert message.body == plain.body
                assert message.attributes[names.ATTRIBUTE_CORRELATION] == plain.correlation_id
                assert message.attributes[names.ATTRIBUTE_REPLY_TO] == REPLY_TO
                found.append((plain, number))
            self.seen[car] = len(queue)
        self.inbox += [one for one in found if one not in self.inbox]
        return sorted(found, key=lambda one: one[1])

    def take(self, said: Said, receipts: list[ReplyReceipt]) -> None:
        """Replies came through: compare what each was told."""
        marked: set[tuple[Plain, int]] = set()
        for (plain, number, words), receipt in zip(said, receipts, strict=True):
            first = plain.live and number not in plain.done and (plain, number) not in marked
            if plain.live:
                plain.stored.setdefault(number, words)
                marked.add((plain, number))
            different = plain.stored.get(number, words) != words
            assert receipt.batch_id == plain.batch_id
            assert receipt.first is (first and not different)
            assert receipt.different is different
            assert receipt.late is (not plain.live and number not in plain.done)
        for plain, number in marked:
            plain.done.add(number)

    def discover(self, said: Said) -> None:
        """The process died: see what it had stored and marked, which can only be what it was given."""
        for plain in {plain for plain, _, _ in said}:
            mine = [(number, words) for of, number, words in said if of is plain]
            for number, words in self.stored_of(plain).items():
                assert number in plain.stored or (plain.live and (number, words) in mine)
                plain.stored.setdefault(number, words)
            marked = self.raw.marked(self.rows()[plain.batch_id]) - plain.done
            assert marked <= {number for number, _ in mine}
            plain.done |= marked

    def only_missing(self, jobs: int) -> None:
        """New jobs are for chunks in which somebody is missing, and no wave is one too many."""
        for job in self.memory.jobs.waiting[jobs:]:
            plain = self.plain[job["batch_id"]]
            assert job["wave"] == plain.face.retries + 1 <= plain.max_retries
            assert any(number // 2 == job["chunk"] for number in plain.missing)

    def hear(self, plain: Plain, event: Any) -> None:
        """An event tells exactly how the scatter has ended; once, but for repeats under the same id."""
        state, missing = plain.face.state, plain.missing
        assert event.id == f"{plain.batch_id}.{state}"
        assert event.detail_type == ("Gather Ready" if state is State.COMPLETE else "Batch Cancelled")
        detail = event.detail
        assert detail["correlation_id"] == plain.correlation_id
        assert detail["recipients"] == len(plain.cars)
        assert (detail["received"], detail["failed"]) == (len(plain.received), len(plain.failed))
        assert detail["missing_count"] == len(missing)
        assert detail["missing_recipients"] == [f"{plain.cars[number]}" for number in missing]
        assert detail["retries"] == plain.face.retries <= plain.max_retries
        said = {name: detail[name] for name in ("received", "failed", "missing_count", "retries")}
        assert self.told.setdefault(plain.batch_id, said) == said

    # What must be true at any time.

    def the_stores_agree(self) -> None:
        for batch_id, plain in self.plain.items():
            row = self.rows()[batch_id]
            assert row.kind is Kind.SCATTER
            assert self.raw.marked(row) == plain.done
            assert self.failed_of(plain) == plain.failed
            assert self.stored_of(plain) == plain.stored
            assert plain.received <= plain.stored.keys()
            assert row.deadline is not None
            plain.see(Face(row.state, row.partial, row.retries, row.deadline))

    def the_service_agrees(self) -> None:
        scatters = ScatterService(self.process())
        for plain in list(self.plain.values())[-2:]:
            status = scatters.status(plain.batch_id)
            assert status.ready is not plain.live
            assert (status.received, status.failed) == (len(plain.received), len(plain.failed))
            assert (status.missing, status.quorum) == (len(plain.missing), plain.quorum)
            listed: dict[int, Any] = {}
            cursor: str | None = None
            while True:
                page = scatters.replies(plain.batch_id, cursor=cursor, limit=2)
                listed |= {reply.ordinal: (reply.name, reply.payload) for reply in page.replies}
                cursor = page.cursor
                if cursor is None:
                    break
            assert list(listed) == sorted(plain.received)
            for number, said in listed.items():
                assert said == (f"{plain.cars[number]}", plain.stored[number])
