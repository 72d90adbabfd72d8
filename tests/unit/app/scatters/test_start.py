"""Starting scatters: under an idempotency key, to large topics, and with deaths at every step."""

import re
from collections import Counter
from typing import Any

import pytest

from fanin import names
from fanin.app.directory.service import TOPIC_PREFIX
from fanin.app.scatters import records as scatter_records
from fanin.app.scatters.service import ScatterService
from fanin.app.scatters.start import check
from fanin.domain import limits
from fanin.domain.batch import State
from fanin.domain.directory import Registration
from fanin.domain.scatter import Recipient, Scatter, Scattered
from fanin.errors import BatchGone, CorrelationIdAlive, InvalidRequest, NotRegistered, RequestTooLarge
from tests.lost_answers import LostAnswers
from tests.stateful.fuse import Fuse
from tests.stateful.scheduler import Crash as BurntDown
from tests.unit.app.scatters.conftest import Fleet


class Town(Fleet):
    """A fleet whose cars are registered, in a topic that is listed by the worker unless it is tiny."""

    def register(self, *cars: int) -> None:
        now = self.clock.at
        for i in cars:
            channel = f"https://sqs/car-{i}"
            self.memory.channels.queues.setdefault(channel, [])
            there = Registration("town", f"car-{i:03}", channel, {}, 86_400, now, now + 86_400_000)
            self.ports.directory.put(
                TOPIC_PREFIX + "town", there.name, there.value, expires_at=there.expires_at
            )

    def leave(self, car: int) -> None:
        self.ports.directory.delete(TOPIC_PREFIX + "town", f"car-{car:03}")

    def ask(self, *, key: str | None = None, at_once: int = 1, **options: object) -> Scattered:
        """A process that starts now asks the whole town."""
        scatters = ScatterService(self.fresh(), at_once=at_once)
        return scatters.start(Scatter("report!", topic="town", **options), key=key)

    @property
    def opened(self) -> set[int]:
        return {new.batch_id for _, new in self.memory.batches.changes}

    def asked(self) -> Counter[str]:
        """Item ids by how many cars got them, over all queues."""
        return Counter(
            item
            for queue in self.memory.channels.queues.values()
            for item in {message.attributes[names.ITEM_ATTRIBUTE] for message in queue}
        )

    def settled(self, scattered: Scattered) -> Scattered:
        """The scatter when its worker has nothing more to do."""
        self.work()
        return self.scatters.status(scattered.batch.batch_id)


@pytest.fixture
def town() -> Town:
    return Town()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of three, so that a dozen cars are a large topic."""
    monkeypatch.setattr(scatter_records, "CHUNK", 3)


class TestKey:
    def test_a_bad_key_writes_nothing(self, town):
        with pytest.raises(InvalidRequest):
            town.scatters.start(Scatter("x", topic="t"), key="x" * 257)
        assert town.accesses.writes.total() == 0

    def test_a_scatter_that_was_removed_is_gone(self, town):
        request = Scatter("report!", topic="nobody")
        first = town.scatters.start(request, key="k")
        town.ports.batches.expire(first.batch.batch_id, now=town.clock.at)

        with pytest.raises(BatchGone):
            ScatterService(town.fresh()).start(request, key="k")

    def test_two_at_the_same_time_start_one(self, town):
        # Given a process that is overtaken by another before it opens the batch, while a car joins
        town.register(*range(3))

        def other() -> None:
            town.register(7)
            town.ask(key="k", at_once=9)

        town.at("batches.create", "before", other)
        mine = town.ask(key="k", at_once=9)
        town.work()
        # Then both started the same scatter, to whom the first of them listed
        assert town.happened
        assert town.opened == {mine.batch.batch_id}
        assert mine.batch.items == 3
        assert set(town.asked().values()) == {1}

    def test_who_comes_back_late_takes_its_correlation_id_anew(self, town):
        # Given a start that died, and another scatter that took its correlation id since
        request = Scatter("report!", town.recipients(1), correlation_id="mine")
        with town.dying("batches.create", "before"):
            town.scatters.start(request, key="k")
        town.clock.advance(60_000)
        other = town.start(1, correlation_id="mine")
        # Then it is refused while that one lives, and goes on when it has ended
        with pytest.raises(CorrelationIdAlive, match=str(other.batch.batch_id)):
            town.scatters.start(request, key="k")
        town.ledger.cancel(other.batch.batch_id)
        assert town.scatters.start(request, key="k").correlation_id == "mine"
        with pytest.raises(CorrelationIdAlive):
            town.start(1, correlation_id="mine")

    def test_a_repeat_finds_the_scatter_and_asks_nobody_again(self, town):
        town.recipients(2)
        request = Scatter("report!", town.recipients(2))
        first = town.scatters.start(request, key="week 47")
        town.work()
        town.reply(0)

        again = ScatterService(town.fresh()).start(request, key="week 47")

        assert again.batch.batch_id == first.batch.batch_id
        assert again.correlation_id == first.correlation_id
        assert (again.received, again.missing) == (1, 1)
        assert town.memory.jobs.waiting == []


class TestSlowCaller:
    def test_a_caller_who_pauses_before_the_last_write_loses_the_id_to_who_came_since(self, town):
        # Given a process that stands still for a minute when all is checked, while another takes its id
        others: list[Scattered] = []

        def pause() -> None:
            town.clock.advance(60_000)
            others.append(town.start(1, correlation_id="mine"))

        town.at("batches.create", "before", pause)
        # When it goes on, Then its own scatter is cancelled before anybody hears of it
        with pytest.raises(CorrelationIdAlive):
            town.start(2, correlation_id="mine")
        (other,) = others
        (mine,) = town.opened - {other.batch.batch_id}
        assert town.scatters.status(mine).batch.state is State.CANCELLED
        assert not town.scatters.status(other.batch.batch_id).ready
        assert {job["batch_id"] for job in town.memory.jobs.waiting} == {other.batch.batch_id}

    def test_a_caller_whose_scatter_has_ended_meanwhile_is_not_refused(self, town):
        # Given a scatter to nobody, whose id another takes as soon as it has ended
        def take() -> None:
            row = next(iter(town.ports.batches.read(town.opened).values()))
            town.fresh().announce(row)
            town.start(1, correlation_id="mine")

        town.at("batches.end", "after", take)
        started = town.scatters.start(Scatter("x", [], correlation_id="mine"))

        assert town.happened
        assert started.ready

    def test_a_caller_who_died_after_the_pause_is_refused_when_it_comes_back(self, town):
        # Given a process that opens its batch too late, and dies before it looks at its id again
        request = Scatter("x", town.recipients(1), correlation_id="mine")

        def pause() -> None:
            town.clock.advance(60_000)
            town.start(1, correlation_id="mine")

        town.at("batches.create", "before", pause)
        for moment in ("before", "after"):
            town.at("batches.create", moment, lambda: None)  # of the other
        with town.dying("batches.create", "after"):
            town.scatters.start(request, key="k")
        assert len(town.opened) == 2

        with pytest.raises(CorrelationIdAlive):
            town.scatters.start(request, key="k")
        assert town.scatters.start(request, key="k").batch.state is State.CANCELLED

    @pytest.mark.parametrize("key", [None, "k"])
    @pytest.mark.parametrize(
        "call", ["directory.put", "records.put", "batches.create", "timers.set", "jobs.send"]
    )
    @pytest.mark.parametrize("nth", range(5))
    def test_a_start_whose_answers_are_lost_is_one_start(self, town, call, nth, key):
        # Given a start of which one write is repeated, after another scatter has started and been replied to
        answers = LostAnswers(town.memory)
        for _ in range(nth):
            town.at(call, "after", lambda: None)

        def others() -> None:
            other = town.scatters.start(Scatter("other", town.recipients(1)))
            town.ledger.cancel(other.batch.batch_id)

        town.at(call, "before", lambda: answers.lose(call, others))

        started = town.scatters.start(Scatter("mine", town.recipients(3), correlation_id="id"), key=key)
        town.work()

        for i in range(3):
            assert [m.body for m in town.got(i) if m.body != "other"][:1] == ["mine"]
            assert town.reply(i).first
        assert town.scatters.status(started.batch.batch_id).received == 3


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("cars", [0, 2, 7])
def test_a_death_at_any_step_is_healed_by_the_key(cars):
    for step in range(200):
        # Given a start that dies, or whose worker does, and a town that changes meanwhile
        town, fuse = Town(), Fuse()
        town.memory.accesses._on_call = fuse.on_call
        town.register(*range(cars))
        lived = True
        try:
            fuse.burn(step, lambda: (town.ask(key="k"), town.work()))  # noqa: B023
        except BurntDown:
            town.register(100)
            lived = False
        # When it is repeated with the key, twice, and the worker gets its job again
        started = town.ask(key="k")
        town.work()
        town.ask(key="k")
        found = town.settled(started)
        # Then there is one scatter, to all who were there or to one more, each under one id of its own
        assert town.opened == {started.batch.batch_id}
        assert found.batch.items in {cars, cars + 1}
        assert found.ready == (found.batch.items == 0)
        asked = town.asked()
        assert (len(asked), set(asked.values())) == (found.batch.items, {1} if asked else set())
        if lived:
            break
    assert 20 < step < 199


@pytest.mark.usefixtures("small")
class TestLargeTopic:
    def test_it_is_starting_until_the_worker_has_listed_it(self, town):
        town.register(*range(8))

        started = town.ask(timeout=60)

        assert (started.starting, started.batch.items, started.ready) == (True, 0, False)
        town.clock.advance(20_000)
        found = town.settled(started)
        assert (found.starting, found.batch.items, found.missing) == (False, 8, 8)
        assert found.batch.deadline == town.clock.at + 60_000
        assert town.memory.timers.alarms[found.batch.batch_id] == found.batch.deadline
        assert [len(town.got(i)) for i in range(8)] == [1] * 8
        for i in range(8):
            town.reply(i, i)
        assert town.said(started) == {f"car-{i:03}": i for i in range(8)}
        assert town.row(started.batch).state is State.COMPLETE

    @pytest.mark.parametrize("cars", [2, 3, 4])
    def test_the_last_chunk_may_be_full_or_not(self, town, cars):
        town.register(*range(cars))
        assert town.settled(town.ask(at_once=1)).batch.items == cars

    def test_the_worker_stops_in_time_and_goes_on_by_another_job(self, town, monkeypatch):
        town.register(*range(20))
        turns: list[int] = []
        put = scatter_records.put_chunk

        def slow(*args: object) -> object:
            town.clock.advance(9_000)
            turns.append(len(town.memory.jobs.waiting))
            return put(*args)

        monkeypatch.setattr("fanin.app.scatters.records.put_chunk", slow)

        assert town.settled(town.ask()).batch.items == 20
        assert len(turns) == 7
        assert [len(town.got(i)) for i in range(20)] == [1] * 20

    def test_nobody_is_listed_twice_while_instances_come_and_go(self, town):
        # Given two workers on the same job, and a town that changes between their writes
        town.register(*range(0, 40, 4))
        started = town.ask()
        job = town.memory.jobs.waiting[0]

        def other() -> None:
            town.register(1, 13, 39)
            town.leave(20)
            ScatterService(town.fresh()).work(job["batch_id"], None, 0)

        town.at("records.put", "before", other)
        found = town.settled(started)
        # Then all who stayed are asked once
        assert town.happened
        asked = [i for i in range(40) if town.memory.channels.queues.get(f"https://sqs/car-{i}")]
        assert set(range(0, 40, 4)) - {20} <= set(asked)
        assert len(asked) == found.batch.items == len(town.asked())
        assert set(town.asked().values()) == {1}

    def test_too_many_are_told_at_once_or_cancelled(self, town, monkeypatch):
        monkeypatch.setattr(limits, "MAX_RECIPIENTS", 9)
        town.register(*range(10))

        assert town.settled(town.ask()).batch.state is State.CANCELLED
        town.leave(9)
        assert town.settled(town.ask()).batch.items == 9

    def test_items_that_are_no_recipients_end_it(self, town):
        town.register(*range(8))
        started = town.ask()
        town.ledger.add(started.batch.batch_id, 1)

        assert town.settled(started).batch.state is State.CANCELLED

    def test_a_share_is_of_those_who_were_listed(self, town):
        town.register(*range(8))
        started = town.ask(quorum=0.5)
        assert town.settled(started).quorum == 4
        for i in range(4):
            town.reply(i)

        assert town.row(started.batch).state is State.COMPLETE

    def test_a_job_that_comes_again_sends_nothing(self, town):
        town.register(*range(8))
        started = town.ask()
        job = town.memory.jobs.waiting[0]
        town.work()

        ScatterService(town.fresh()).work(job["batch_id"], None, 0)

        assert town.memory.jobs.waiting == []
        town.ledger.cancel(started.batch.batch_id)
        ScatterService(town.fresh()).work(job["batch_id"], None, 0)
        assert town.memory.jobs.waiting == []


class TestNamed:
    def test_registrations_are_named_one_by_one_beside_queues(self, town):
        town.register(1, 2)
        (queue,) = town.recipients(1)

        to = [Recipient("", "town/car-002"), queue, Recipient("mine", "town/car-001")]
        started = town.scatters.start(Scatter("x", to))
        town.work()

        assert [len(town.got(i)) for i in range(3)] == [1, 1, 1]
        for i in range(3):
            town.reply(i, i)
        assert town.said(started) == {"car-002": 2, "car 0": 0, "mine": 1}

    def test_a_queue_without_a_name_is_called_as_its_url_ends(self, town):
        (queue,) = town.recipients(1)

        started = town.scatters.start(Scatter("x", [Recipient("", queue.channel)]))

        (missing,) = town.scatters.missing_recipients(started.batch.batch_id).recipients
        assert missing.name == "car-0"

    @pytest.mark.parametrize(("name", "later"), [("town/car-009", 0), ("town/car-001", 86_400_000)])
    def test_one_that_is_not_there_refuses_all(self, town, name, later):
        town.register(1)
        town.clock.advance(later)
        before = town.accesses.writes.total()

        with pytest.raises(NotRegistered, match=name):
            town.scatters.start(Scatter("x", [Recipient("", name)]))
        assert town.accesses.writes.total() == before


ONE = Recipient("car", "https://sqs/car")
TOPIC: dict[str, Any] = {"recipients": [], "topic": "t"}


def scatter(**options: Any) -> Scatter:
    return Scatter(**{"body": "x", "recipients": [ONE], **options})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"recipients": []},
        {"recipients": [ONE] * 100_000},
        {"recipients": [Recipient("é" * 256, "q" * 1_024)]},
        {**TOPIC, "topic": "t" * 128, "where": {"kind": "van"}},
        {**TOPIC, "where": {f"{n}".zfill(64): "v" * 256 for n in range(16)}},
        {"type": "t" * 256},
        {"attributes": {f"{n}": "x" for n in range(6)}},
        {"attributes": {"fanin": "x", "Fanin-item": "x", "my-fanin-item": "x"}},
        {"correlation_id": "c" * 128},
        {"timeout": 5},
        {"timeout": 86_400},
        {"max_retries": 10},
        {"quorum": 1},
        {"quorum": 0.999},
    ],
)
def test_a_request_within_all_limits_is_allowed(options):
    check(scatter(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": "t"}, "a scatter goes to recipients or to a topic, not to both"),
        ({"where": {"kind": "van"}}, "where chooses among the registrations of a topic; name the topic"),
        ({**TOPIC, "where": {f"{n}": "v" for n in range(17)}}, "where may have at most 16 pairs"),
        ({**TOPIC, "where": {"n" * 65: "v"}}, "a key of where must be text of 1 to 64"),
        ({**TOPIC, "where": {"kind": "v" * 257}}, "where['kind'] must be text of 0 to 256"),
        ({"recipients": [Recipient("n" * 257, "q")]}, "a recipient's name must be text of 0 to 256"),
        ({"recipients": [Recipient("", "")]}, "a recipient's channel must be text of 1 to 1024"),
        ({**TOPIC, "topic": "t" * 129}, "topic must be 1 to 128 letters, digits"),
        ({"body": ""}, "body must be text, and not empty"),
        ({"type": "t" * 257}, "type must be text of 0 to 256 characters"),
        ({"attributes": {"n" * 257: "v"}}, "an attribute's name must be text of 1 to 256"),
        ({"attributes": {"week": "v" * 257}}, "attribute 'week' must be text of 1 to 256"),
        (
            {"attributes": {"fanin-mine": "x"}},
            "attribute 'fanin-mine' is reserved for fanin; use another name",
        ),
        ({"correlation_id": "c" * 129}, "correlation_id must be text of 1 to 128"),
        ({"timeout": 4}, "timeout must be a whole number from 5 to 86400, not 4"),
        ({"max_retries": 11}, "max_retries must be a whole number from 0 to 10, not 11"),
        ({"quorum": 0}, "quorum must be a whole number from 1 to 100000, not 0"),
        ({"quorum": True}, "quorum must be a whole number from 1 to 100000, not True"),
        ({"quorum": 0.0}, "quorum 0.0"),
        ({"quorum": 1.0}, "give a number of replies as an integer"),
        ({"quorum": float("nan")}, "quorum nan"),
    ],
)
def test_a_value_out_of_its_range_or_against_another_is_refused(options, message):
    with pytest.raises(InvalidRequest, match=re.escape(message)):
        check(scatter(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipients": [ONE] * 100_001}, "100001 recipients in one call; send at most 100000"),
        ({"attributes": {f"{n}": "x" for n in range(7)}}, "7 attributes in one call; send at most 6"),
    ],
)
def test_one_too_many_is_too_large(options, message):
    with pytest.raises(RequestTooLarge, match=message):
        check(scatter(**options))


@pytest.mark.parametrize(
    ("character", "size"), [("x", 1), ('"', 2), ("\n", 2), ("é", 6), ("\u20ac", 6), ("😀", 12)]
)
def test_a_body_may_take_200_kilobytes_of_json_with_its_quotes_and_escapes(character, size):
    body = character * ((204_800 - 2) // size)
    rest = "x" * (204_800 - 2 - len(body) * size)

    check(scatter(body=body + rest))
    with pytest.raises(RequestTooLarge, match="the body is over 204800 bytes; send a claim check"):
        check(scatter(body=body + rest + "x"))
