"""A closed batch on the stack whose items tests acknowledge, and datasets of them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fanin.domain.batch import Batch, OpenBatch
from fanin.domain.ids import Group
from fanin.spark.runtime.service import Service

ITEMS = 9_000


def filled(service: Service) -> tuple[Batch, Group]:
    """Open a batch of ``ITEMS`` items and close it."""
    ledger = service.ledger()
    batch = ledger.open(OpenBatch(user_key="in bulk"))
    group = ledger.add(batch.batch_id, ITEMS)
    ledger.close(batch.batch_id)
    return batch, group


def written(folder: Path, **columns: list[object]) -> str:
    """Write a dataset of several row groups; returns its path."""
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "part-0.parquet", row_group_size=3_000)
    return str(folder)
