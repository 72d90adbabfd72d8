"""Parquet files that tasks read themselves: columns go straight into numpy, not through Spark's rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.parquet_columns import normalized
from fanin.spark.inputs.footers import DAMAGED, contradiction
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.runtime.arrow import ArrowBatches
from fanin.spark.runtime.object_store import file_system, place_of

_LEAST: Final = 8 << 20
"""A task is worth starting for so many bytes of files."""
_MOST: Final = 1 << 30
"""Most bytes of files for one task, which has to read them again if it is lost."""
_ROWS: Final = 1 << 20
"""Numbers that are read at once."""
_IDS: Final = 1 << 14
"""Ids that are read at once: so few that pyarrow uses the same memory again; fewer than ``_PIECE``."""
_PAGE: Final = 64 << 20
"""Bytes of values that are read at once, if a row group's are as long as its columns say."""


class FileSplit(NamedTuple):
    """A range of a file's bytes; it stands for the row groups that have their middle in it.

    A split may end just behind the start of a row group. If it stood for those that begin in it, its task
    would have almost a row group more than its share.
    """

    path: str
    start: int
    stop: int


class ParquetFiles:
    """The Parquet files of a dataset; Spark sends this to the tasks with the functions that they run.

    Args:
        path: a folder or a file, as Spark takes it. Like Spark, it skips names that begin with a dot or an
            underscore, and empty files.
        found: the files, if they were found already.
        exact: names of columns that differ in case are different.
        spark: the session whose settings for S3 apply; without one, only the environment counts.

    Attributes:
        sizes: path → bytes of the file.
    """

    def __init__(
        self,
        path: str,
        found: Sequence[FoundFile] | None = None,
        *,
        exact: bool = False,
        spark: SparkSession | None = None,
    ) -> None:
        self.exact = exact
        self.system, root = file_system(found[0].path if found else path, spark)
        if found is not None:
            self.sizes = {place_of(file.path): file.size for file in found}
            return
        there = self.system.get_file_info(root)
        infos = [there]
        if there.type == pafs.FileType.Directory:
            infos = self.system.get_file_info(pafs.FileSelector(root, recursive=True))
        self.sizes = {
            info.path: info.size
            for info in sorted(infos, key=lambda info: str(info.path))
            if info.is_file and info.size and not _hidden(info.path[len(root) :])
        }

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the first file; None if there are no files."""
        return next((pq.read_schema(path, filesystem=self.system) for path in self.sizes), None)

    def readable(self, schema: InputSchema) -> bool:
        """Whether tasks can read the files: they have the columns, and these need no conversion."""
        if self.schema is None:
            return False
        kinds = {field.name: str(field.type) for field in self.schema}
        fits = ("string", "large_string") if schema.by_id else ("int8", "int16", "int32", "int64", "uint32")
        return all(kinds.get(name) in fits for name in schema.columns)

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

    def read(
        self, splits: Sequence[FileSplit], schema: InputSchema, *, reasons: bool
    ) -> Iterator[ArrowBatches]:
        """Read the columns that name items, a row group at a time.

        Args:
            splits: those of one task.
            schema: how the files name items.
            reasons: skip rows with a ``reason``, which are failures; without it, such rows are refused.

        Raises:
            InvalidRequest: a file cannot be read, has a column twice or of another type than the first file,
                or has reasons that nobody expects.
        """
        wanted = [*schema.columns, *(["reason"] if reasons else [])]
        for split in splits:
            try:
                yield from self._read(split, schema, wanted)
            except (pa.ArrowException, OSError) as error:
                raise InvalidRequest(f"{split.path} cannot be read as Parquet: {error}") from error

    def _folded(self, name: str) -> str:
        return name if self.exact else name.lower()

    def _read(self, split: FileSplit, schema: InputSchema, wanted: Sequence[str]) -> Iterator[ArrowBatches]:
        path, start, stop = split
        with self.system.open_input_file(path) as opened:
            file, size = pq.ParquetFile(opened), opened.size()
            present = {
                name: wanted[place]
                for name in file.schema_arrow.names
                for place, one in enumerate(wanted)
                if self._folded(name) == one
            }
            if len(set(present.values())) < len(present):
                raise InvalidRequest(
                    f"{path} has a column twice, in {', '.join(present)}; rename one of them"
                )
            if wrong := contradiction(file.metadata, path):
                raise InvalidRequest(wrong)
            if "reason" not in wanted and "reason" in map(self._folded, file.schema_arrow.names):
                _refuse_reasons(file, path, self._folded)
            for group in range(file.num_row_groups):
                metadata = file.metadata.row_group(group)
                if not start <= _middle(metadata, size) < stop:
                    continue
                left = metadata.num_rows
                for rows in file.iter_batches(
                    _rows_at_once(metadata, present, _IDS if schema.by_id else _ROWS),
                    row_groups=[group],
                    columns=list(present),
                    use_threads=False,
                ):
                    left -= rows.num_rows
                    named = [present[name] for name in rows.schema.names]
                    taken = pa.RecordBatch.from_arrays(rows.columns, named) if named else rows
                    yield normalized(taken, schema, path)
                if left:
                    raise InvalidRequest(
                        f"the footer of {path} promises {left} rows more than there are; {DAMAGED}"
                    )


def _hidden(path: str) -> bool:
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part) or part.endswith("._COPYING_")
        for part in path.split("/")
    )


def _rows_at_once(group: Any, columns: Collection[str], most: int) -> int:
    """So many rows that a page of a row group's values is not larger than the memory for one."""
    sizes = (group.column(place) for place in range(group.num_columns))
    size = sum(int(one.total_uncompressed_size) for one in sizes if one.path_in_schema in columns)
    return max(1, min(most, _PAGE * max(1, int(group.num_rows)) // max(1, size)))


def _refuse_reasons(file: Any, path: str, folded: Callable[[str], str]) -> None:
    """Refuse failures that would be taken for successes.

    Raises:
        InvalidRequest: a row of the file has a reason.
    """
    names = [name for name in file.schema_arrow.names if folded(name) == "reason"]
    for rows in file.iter_batches(columns=names, use_threads=False):
        if any(column.null_count < len(column) for column in rows.columns):
            raise InvalidRequest(
                f"{path} has reasons of failures, and the rows that it belongs to have no column reason; read"
                " them with the option mergeSchema"
            )


def _middle(group: Any, size: int) -> int:
    """The byte of its file that is in the middle of a row group; it lies in one split only.

    Args:
        group: its metadata.
        size: of the file, in bytes; whatever sizes the metadata has, each row group's middle is within it.
    """
    if not group.num_columns:
        return 0
    first = group.column(0)
    start = int(min(filter(None, [first.dictionary_page_offset, first.data_page_offset])))
    length = sum(int(group.column(place).total_compressed_size) for place in range(group.num_columns))
    return max(0, min(start + length // 2, size - 1))
