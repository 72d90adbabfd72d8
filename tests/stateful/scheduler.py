"""Runs actors as greenlets; at every access to a store, a seed decides who goes on and who crashes."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from random import Random
from typing import TypeVar

from greenlet import getcurrent, greenlet

from fanin.adapters.memory import Delayed, LostAnswer
from fanin.errors import FaninError, OutcomeUnknown, ServiceUnavailable, Throttled

T = TypeVar("T")

WEIGHTS = (1.0, 1.0, 1.0, 8.0, 0.02)
"""How eager an actor is. The last stalls between two accesses while the others get far."""


LOST = {"before": Delayed, "after": LostAnswer}
"""What may happen to a request at each moment, other than a crash."""


OVERLOAD = 0.2
"""How likely a request of a consumer is throttled while there is an overload."""
MOST_LOST = 2_000
"""Most answers that an actor loses; then its outage is over. The store in memory counts each row of a read
as an answer, so without a limit a read of hundreds of rows would never succeed.
"""


class Crash(BaseException):
    """The process dies here; no handler of errors sees it."""


class Death(Crash):
    """The process dies here, and nobody starts it again."""


class Stuck(AssertionError):
    """Nobody can go on, or it takes for ever."""


class Scheduler:
    """Interleaves actors at the accesses of the stores in memory (their ``on_call``).

    Args:
        rng: decides everything.
        onlooker: called at every access, by whoever makes it.
        crashes: how many crashes are left to happen.
        losing: how likely the answer to an access is lost; the SDK then sends it again, after others ran.
            A request is as likely to be late: the SDK sends it again, and it arrives at any time.
        dying: how likely a crash of a mortal actor is its death.
        throttles: how many requests of consumers are throttled.
        trace: gets a line for each access and switch, when a seed is replayed.

    Attributes:
        lost: how many answers each actor has lost, by name.
    """

    def __init__(
        self,
        rng: Random,
        onlooker: Callable[[], None],
        *,
        crashes: int,
        losing: float = 0.0,
        dying: float = 0.0,
        throttles: int = 0,
        trace: Callable[[str], None] | None = None,
    ) -> None:
        self._rng = rng
        self._onlooker = onlooker
        self._crashes = crashes
        self._losing = losing
        self._dying = dying
        self._throttles = throttles
        self._trace = trace
        self.lost: Counter[str] = Counter()
        self._hub = getcurrent()
        self._names: dict[greenlet, str] = {}
        self._mortal: frozenset[str] = frozenset()
        self._awaited: dict[greenlet, Callable[[], object]] = {}
        self._switching = rng.choice((0.1, 0.3, 0.7))
        self._crashing = rng.choice((0.0, 0.01, 0.03, 0.1))

    def on_call(self, call: str, moment: str) -> None:
        """The hook of the stores: look, then crash, let others go on, lose the answer, or just return."""
        self._onlooker()
        me = getcurrent()
        if me is self._hub:
            return
        self.tell(f"{call} {moment}")
        if self._crashes and self._rng.random() < self._crashing:
            self._crashes -= 1
            if self.name in self._mortal and self._rng.random() < self._dying:
                self.tell("DEATH")
                raise Death
            self.tell("CRASH")
            raise Crash
        if self._rng.random() < self._switching:
            self._hub.switch()
        outage = moment in LOST and self.lost[self.name] < MOST_LOST
        if outage and self._rng.random() < self._losing:
            self.lost[self.name] += 1
            self.tell(LOST[moment].__name__)
            for _ in range(self._rng.choice((0, 1, 4))):
                self._hub.switch()
            raise LOST[moment]
        busy = self._throttles and moment == "before" and self.name.startswith("consumer")
        if busy and self._rng.random() < OVERLOAD:
            self._throttles -= 1
            self.tell("Throttled")
            raise Throttled("slow down")

    @property
    def name(self) -> str:
        """Name of the actor that runs."""
        return self._names.get(getcurrent(), "-")

    @property
    def acts(self) -> bool:
        """Whether an actor is asking, and not a test that looks at the stores."""
        return getcurrent() is not self._hub

    def wait(self, condition: Callable[[], T]) -> T:
        """Let the others go on until the condition is truthy."""
        while not (value := condition()):
            me = getcurrent()
            self._awaited[me] = condition
            self._hub.switch()
            self._awaited.pop(me, None)
        return value

    def pause(self) -> None:
        """Let another actor go on."""
        self._hub.switch()

    def run(
        self,
        actors: dict[str, Callable[[], None]],
        *,
        between: Callable[[], None],
        mortal: Collection[str] = (),
    ) -> None:
        """Run actors until all have returned.

        Args:
            actors: by name. One that crashes, or gives up because no answer came, is started again from the
                beginning.
            between: called now and then between two accesses (it moves the clock).
            mortal: names of those that may die. They see their ``Death``, and return.

        Raises:
            Stuck: they do not come to an end.
        """
        rng = self._rng
        self._mortal = frozenset(mortal)
        live = [greenlet(lambda a=actor: self._persist(a)) for actor in actors.values()]
        self._names |= dict(zip(live, actors, strict=True))
        weights = {task: rng.choice(WEIGHTS) for task in live}
        for _ in range(200_000):
            if not live:
                return
            task = self._choose(live, weights)
            if not self._ready(task):
                task = self._choose([task for task in live if self._ready(task)], weights)
            task.switch()
            if task.dead:
                live.remove(task)
            if rng.random() < 0.03:
                between()
        raise Stuck(f"still running: {[self._names[task] for task in live]}")

    def _ready(self, task: greenlet) -> object:
        awaited = self._awaited.get(task)
        return awaited is None or awaited()

    def _choose(self, tasks: list[greenlet], weights: dict[greenlet, float]) -> greenlet:
        if not tasks:
            raise Stuck(f"all wait for each other: {[self._names[task] for task in self._awaited]}")
        return self._rng.choices(tasks, [weights[task] for task in tasks])[0]

    def tell(self, line: str) -> None:
        """Add a line to the trace."""
        if self._trace:
            self._trace(f"{self.name:12} {line}")

    def _persist(self, actor: Callable[[], None]) -> None:
        while True:
            try:
                return actor()
            except Crash:
                continue
            except (ServiceUnavailable, OutcomeUnknown, ExceptionGroup) as error:
                others = error.split(ServiceUnavailable)[1] if isinstance(error, ExceptionGroup) else None
                if others or not self._losing:
                    raise


def found_out(simulate: Callable[[int], object], seeds: Iterable[int]) -> bool:
    """Whether one of the seeds shows that what they play is broken."""
    for seed in seeds:
        try:
            simulate(seed)
        except (AssertionError, FaninError, ValueError):
            return True
    return False
