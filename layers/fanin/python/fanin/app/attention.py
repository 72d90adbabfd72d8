"""Whether a person should look at an ended batch: the ``attention`` of its row, by which an index lists it.

A live batch gets its flag where trouble begins: with the first failure, and when its stall is told. When it
has ended, its flag follows from what is stored of it, so ``look_again`` can be repeated. It is called at the
end, after each failed attempt to tell a target, and after a redrive. A batch without trouble costs no write.
"""

from fanin.app.ports import Ports
from fanin.app.ports.batches import ItemPlace
from fanin.app.ports.parts import REDRIVE, TARGETS
from fanin.app.ports.records import Record
from fanin.domain.batch import Batch, State, Trouble
from fanin.domain.ids import parse_item
from fanin.domain.targets import TargetState

_FAILING = {TargetState.FAILED, TargetState.PARKED}
NESTED = 5
"""How many failed items of a batch are looked at for nested batches whose failures were redriven."""
_REDRIVES = 100
"""How many redrives of a batch are read at most to see what they sent."""


def look_again(ports: Ports, batch: Batch) -> None:
    """Write the flag of a batch that has ended, if it changes; may be repeated."""
    if not batch.state.terminal or (trouble := trouble_of(ports, batch)) is batch.attention:
        return
    ports.batches.flag(batch, trouble)
    if trouble is None and batch.parent_item is not None:
        parent_id = parse_item(batch.parent_item)[0].batch_id
        for parent in ports.batches.read([parent_id]).values():
            look_again(ports, parent)


def trouble_of(ports: Ports, batch: Batch) -> Trouble | None:
    """What is wrong with a batch that has ended; None if nothing is."""
    if batch.targets and _target_fails(ports, batch):
        return Trouble.TARGETS
    if batch.state is State.CANCELLED and batch.cause is None:
        return None  # somebody asked for it
    if batch.partial or batch.state in {State.TIMED_OUT, State.ORPHANED}:
        return Trouble.INCOMPLETE
    tolerated = batch.tolerated_failures is not None and batch.succeeded
    if tolerated or not _has_failed(ports, batch) or _redriven(ports, batch) or _mended(ports, batch):
        return None
    return Trouble.FAILED


def _target_fails(ports: Ports, batch: Batch) -> bool:
    names = [f"{TARGETS}{number}" for number in range(batch.targets)]
    kept = ports.records.read(str(batch.batch_id), names)
    return any(record.value["state"] in _FAILING for record in kept.values())


def _has_failed(ports: Ports, batch: Batch) -> bool:
    return batch.failed > 0 or (batch.failed_more and bool(ports.parts.failures(batch.batch_id, limit=1)[0]))


def _redriven(ports: Ports, batch: Batch) -> bool:
    """Whether every failure that can be sent again was."""
    runs = ports.records.page(str(batch.batch_id), prefix=REDRIVE, limit=_REDRIVES).records
    sent = sum(run.value["counts"]["items"] for run in runs)
    return any(map(_took_all, runs)) or (not batch.failed_more and sent >= batch.failed > 0)


def _mended(ports: Ports, batch: Batch) -> bool:
    """Whether all that failed are items whose nested batches need nobody any more."""
    if batch.failed_more or batch.failed > NESTED:
        return False
    rows, _ = ports.parts.failures(batch.batch_id, limit=NESTED)
    noted = (ports.batches.child_of(ItemPlace(batch.batch_id, row.ordinal)) for row in rows)
    children = ports.batches.read([child for child in noted if child is not None])
    return len(children) == batch.failed and all(one.attention is None for one in children.values())


def _took_all(run: Record) -> bool:
    value, counts = run.value, run.value["counts"]
    narrow = value["errors"] or value["ranges"]
    left = counts["not_kept"] or counts["refused"]
    return bool(value["done"] and not narrow and not left and counts["items"] + counts["already"])
