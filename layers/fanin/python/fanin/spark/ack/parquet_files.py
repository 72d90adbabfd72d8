"""Parquet files that tasks read themselves: columns go straight into numpy, not through Spark's rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.schemas import Records
from fanin.spark.runtime.object_store import file_system

_LEAST: Final = 8 << 20
"""A task is worth starting for so many bytes of files."""
_MOST: Final = 1 << 30
"""Most bytes of files for one task, which has to read them again if it is lost."""
_ROWS: Final = 1 << 20
_IDS: Final = 1 << 14
"""Rows that are read at once, of numbers and of texts; of these so few that memory is used again."""


class FileSplit(NamedTuple):
    """A range of a file's bytes; it stands for the row groups that begin in it."""

    path: str
    start: int
    stop: int


class ParquetFiles:
    """The Parquet files of a dataset; Spark sends this to the tasks with the functions that they run.

    Args:
        path: a folder or a file, as Spark takes it. Like Spark, it skips names that begin with a dot or an
            underscore.
        spark: the session whose settings for S3 apply; without one, only the environment counts.

    Attributes:
        sizes: path → bytes of the file.
    """

    def __init__(self, path: str, spark: SparkSession | None = None) -> None:
        self.system, root = file_system(path, spark)
        found = self.system.get_file_info(root)
        infos = [found]
        if found.type == pafs.FileType.Directory:
            infos = self.system.get_file_info(pafs.FileSelector(root, recursive=True))
        self.sizes = {
            info.path: info.size
            for info in sorted(infos, key=lambda info: str(info.path))
            if info.is_file and not _hidden(info.path[len(root) :])
        }

    def schema(self) -> Any:
        """The Arrow schema of the first file; None if there are no files."""
        return next((pq.read_schema(path, filesystem=self.system) for path in self.sizes), None)

    def splits(self, parallelism: int) -> list[list[FileSplit]]:
        """Divide the files among tasks, in order.

        Args:
            parallelism: tasks that can run at the same time; there are as many splits, unless the files are
                small or very large.

        Returns:
            For each task its splits.
        """
        total = sum(self.sizes.values())
        tasks = max(min(parallelism, -(-total // _LEAST)), -(-total // _MOST))
        share = -(-total // tasks) if tasks else 0
        splits: list[list[FileSplit]] = []
        room = 0
        for path, size in self.sizes.items():
            start = 0
            while start < size:
                if not room:
                    splits.append([])
                    room = share
                stop = min(size, start + room)
                splits[-1].append(FileSplit(path, start, stop))
                room, start = room - (stop - start), stop
        return splits

    def read(self, splits: Sequence[FileSplit], schema: InputSchema, *, reasons: bool) -> Iterator[Records]:
        """Read the columns that name items, a row group at a time.

        Args:
            splits: those of one task.
            schema: how the files name items.
            reasons: skip rows with a ``reason``, which are failures.
        """
        wanted = [*schema.columns, *(["reason"] if reasons else [])]
        for path, start, stop in splits:
            with self.system.open_input_file(path) as opened:
                file = pq.ParquetFile(opened)
                present = [name for name in wanted if name in file.schema_arrow.names]
                for group in range(file.num_row_groups):
                    if not start <= _offset(file.metadata.row_group(group)) < stop:
                        continue
                    size = _IDS if schema.by_id else _ROWS
                    for rows in file.iter_batches(
                        size, row_groups=[group], columns=present, use_threads=False
                    ):
                        yield _normalized(rows, schema)


def _hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def _offset(group: Any) -> int:
    """Where a row group begins in its file; that lies in one split only."""
    if not group.num_columns:
        return 0
    column = group.column(0)
    return int(min(filter(None, [column.dictionary_page_offset, column.data_page_offset])))


def _normalized(rows: Records, schema: InputSchema) -> Records:
    """The columns that a ``Coalescer`` takes."""
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    if "reason" in columns:
        keep = pc.is_null(columns["reason"])
        columns = {name: column.filter(keep) for name, column in columns.items()}
    count = len(next(iter(columns.values()))) if columns else rows.num_rows
    if schema.by_id:
        items = columns.get("item", pa.nulls(count, pa.string()))
        return pa.RecordBatch.from_arrays([items], ["item"])
    empty = pa.nulls(count, pa.int64())
    numbers = [columns.get(name, empty).cast(pa.int64()) for name in schema.columns]
    return pa.RecordBatch.from_arrays(numbers, schema.columns)
