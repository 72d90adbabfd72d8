"""Parquet files read by the tasks themselves, column by column into numpy, past Spark's rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from fanin.spark.ack.input_schema import Form, Records

_LEAST: Final = 8 << 20
"""Bytes of files that are worth a task."""
_MOST: Final = 1 << 30
"""Bytes of files for one task: what it repeats if it is lost."""
_ROWS: Final = 1 << 20


class Piece(NamedTuple):
    """Some bytes of a file: the row groups that begin there."""

    path: str
    start: int
    stop: int


class Files:
    """The Parquet files of a dataset; it goes to the tasks with the functions they run.

    Args:
        path: a folder or a file, as one gives it to Spark; names that begin with a dot or an underscore are
            left out, as Spark does.

    Attributes:
        sizes: bytes of each file, by path.
    """

    def __init__(self, path: str) -> None:
        uri = (
            path.replace("s3a://", "s3://", 1)
            if "://" in path
            else Path(path.removeprefix("file:")).resolve()
        )
        self.system, root = pafs.FileSystem.from_uri(str(uri))
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
        """The Arrow schema of the first file; None if there is no file."""
        return next((pq.read_schema(path, filesystem=self.system) for path in self.sizes), None)

    def shares(self, parallelism: int) -> list[list[Piece]]:
        """Divide the files, in order, among tasks.

        Args:
            parallelism: tasks that run at a time; there are as many at the least if the files are worth it.
        """
        total = sum(self.sizes.values())
        tasks = max(min(parallelism, -(-total // _LEAST)), -(-total // _MOST))
        share = -(-total // tasks) if tasks else 0
        shares: list[list[Piece]] = []
        room = 0
        for path, size in self.sizes.items():
            start = 0
            while start < size:
                if not room:
                    shares.append([])
                    room = share
                stop = min(size, start + room)
                shares[-1].append(Piece(path, start, stop))
                room, start = room - (stop - start), stop
        return shares

    def read(self, pieces: Sequence[Piece], form: Form, *, reasons: bool) -> Iterator[Records]:
        """Read the columns that name items, a row group at a time.

        Args:
            pieces: those of one task.
            form: how the files name items.
            reasons: leave rows with a ``reason`` out, since those are failures.
        """
        wanted = [*form.columns, *(["reason"] if reasons else [])]
        for path, start, stop in pieces:
            with self.system.open_input_file(path) as opened:
                file = pq.ParquetFile(opened)
                present = [name for name in wanted if name in file.schema_arrow.names]
                for group in range(file.num_row_groups):
                    if not start <= _offset(file.metadata.row_group(group)) < stop:
                        continue
                    for rows in file.iter_batches(
                        _ROWS, row_groups=[group], columns=present, use_threads=False
                    ):
                        yield _normal(rows, form)


def _hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def _offset(group: Any) -> int:
    """Where a row group begins in its file, which is in one piece only."""
    if not group.num_columns:
        return 0
    column = group.column(0)
    return int(min(filter(None, [column.dictionary_page_offset, column.data_page_offset])))


def _normal(rows: Records, form: Form) -> Records:
    """The columns that a ``Coalescer`` takes."""
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    if "reason" in columns:
        keep = pc.is_null(columns["reason"])
        columns = {name: column.filter(keep) for name, column in columns.items()}
    many = len(next(iter(columns.values()))) if columns else rows.num_rows
    if form.ids:
        items = columns.get("item", pa.nulls(many, pa.string()))
        return pa.RecordBatch.from_arrays([items.cast(pa.large_string())], ["item"])
    empty = pa.nulls(many, pa.int64())
    numbers = [columns.get(name, empty).cast(pa.int64()) for name in form.columns]
    return pa.RecordBatch.from_arrays(numbers, form.columns)
