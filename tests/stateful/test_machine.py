"""The ledger in memory against a plain model; that DynamoDB answers alike is shown in ``tests/oracle``."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports import Ports
from fanin.domain.tree import Tree
from tests.stateful.machine import LedgerMachine

WIDTHS = [2, 3, 64]


def quick(examples: int, steps: int) -> settings:
    """The same examples at every run."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def assert_found_out(machine: type[RuleBasedStateMachine], steps: int) -> None:
    """A machine whose ledger was broken fails within some examples."""
    once = settings(quick(1_500, steps), phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=once)


def written(memory: Memory) -> int:
    """Rows written so far; a write that its condition refused wrote none."""
    accesses = memory.accesses
    calls = ("words.clear", "parts.put_failures", "parts.update_failures", "parts.put_messages")
    plain = sum(accesses.writes[call] - accesses.refused[call] for call in calls)
    return len(memory.batches.changes) + plain


def in_memory(width: int) -> type[LedgerMachine]:
    class InMemory(LedgerMachine):
        @staticmethod
        def world() -> tuple[Ports, FixedClock, Callable[[], int]]:
            clock = FixedClock()
            memory = Memory(tree=Tree(width), clock=clock)
            return memory.ports(), clock, lambda: written(memory)

    return InMemory


@pytest.mark.parametrize("width", WIDTHS)
def test_the_ledger_in_memory_does_as_plain_sets_do(width):
    run_state_machine_as_test(in_memory(width), settings=quick(60, 50))


@pytest.mark.soak(long=True)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_ledger_in_memory_does_so_for_a_long_time(width):
    run_state_machine_as_test(in_memory(width), settings=settings(quick(1_500, 60), derandomize=False))
