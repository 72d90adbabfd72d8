"""Parquet files that tasks read themselves: columns go straight into numpy, not through Spark's rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescer import coalesce_task
from fanin.spark.ack.input_schema import LONGEST, InputSchema
from fanin.spark.ack.issued import BatchReader
from fanin.spark.ack.numpy_items import decoded
from fanin.spark.ack.schemas import PAGES
from fanin.spark.inputs.footers import DAMAGED, contradiction
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.runtime.arrow import ArrowBatches
from fanin.spark.runtime.places import file_system, place_of
from fanin.spark.runtime.session import most_tasks

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
        found: the files, at least one.
        exact: names of columns that differ in case are different.
        spark: the session whose settings for S3 apply; without one, only the environment counts.

    Attributes:
        sizes: path → bytes of the file.
    """

    def __init__(
        self, found: Sequence[FoundFile], *, exact: bool = False, spark: SparkSession | None = None
    ) -> None:
        self.exact = exact
        self.system, _ = file_system(found[0].path, spark)
        self.sizes = {place_of(file.path): file.size for file in found}

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the first file."""
        return pq.read_schema(next(iter(self.sizes)), filesystem=self.system)

    def readable(self, schema: InputSchema) -> bool:
        """Whether tasks can read the files: they have the columns, and these need no conversion."""
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


_TEXT: Final = (pa.string(), pa.large_string())
_ALSO_TEXT: Final = (pa.null(), pa.binary(), pa.large_binary(), pa.string_view())
"""Types of text that ``ItemIds`` does not take."""


def normalized(rows: ArrowBatches, schema: InputSchema, path: str) -> ArrowBatches:
    """Make the columns that a ``Coalescer`` takes; as in Spark, a value that is none does not end a file.

    Args:
        rows: of a file, with the columns that it has of those of the schema, and perhaps ``reason``: rows
            that have one are left out.
        schema: how the files name items.
        path: of the file.

    Raises:
        InvalidRequest: a column is not of text or of whole numbers, as it is in the first file.
    """
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    if "reason" in columns:
        keep = pc.is_null(columns["reason"])
        columns = {name: column.filter(keep) for name, column in columns.items()}
    count = len(next(iter(columns.values()))) if columns else rows.num_rows
    if schema.by_id:
        items = columns.get("item", pa.nulls(count, pa.string()))
        return pa.RecordBatch.from_arrays([_bounded(_texts(items, path))], ["item"])
    empty = pa.nulls(count, pa.int64())
    numbers = [_numbers(columns.get(name, empty), name, path).cast(pa.int64()) for name in schema.columns]
    return pa.RecordBatch.from_arrays(numbers, schema.columns)


def _texts(items: Any, path: str) -> Any:
    """Item ids as plain text. pandas writes categories, which come as dictionaries."""
    if items.type in _TEXT:
        return items
    if pa.types.is_dictionary(items.type):
        return _texts(items.dictionary_decode(), path)
    if items.type in _ALSO_TEXT:
        try:
            return items.cast(pa.string())
        except pa.ArrowInvalid:
            return decoded(items)
    raise _refused("item", items.type, path, "item ids are text")


def _numbers(numbers: Any, name: str, path: str) -> Any:
    """Whole numbers.

    Arrow would also make numbers of booleans, times, text, and floating-point numbers that were rounded.
    """
    if pa.types.is_dictionary(numbers.type):
        return _numbers(numbers.dictionary_decode(), name, path)
    if pa.types.is_integer(numbers.type) or pa.types.is_null(numbers.type):
        return numbers
    raise _refused(name, numbers.type, path, "integers are expected, as in the first file")


def _refused(name: str, kind: Any, path: str, expected: str) -> InvalidRequest:
    return InvalidRequest(
        f"the column {name} of {path} has the type {kind}, and {expected}; write all files with one type, or"
        " acknowledge those of each type in a run of its own"
    )


def _bounded(items: Any) -> Any:
    """Item ids; what is longer than any is cut."""
    longest = pc.max(pc.binary_length(items)).as_py() or 0
    if longest <= LONGEST:
        return items
    try:
        return pc.utf8_slice_codeunits(items, 0, LONGEST)
    except pa.ArrowInvalid:
        return pc.utf8_slice_codeunits(decoded(items), 0, LONGEST)


def pages_from_files(
    spark: SparkSession,
    files: ParquetFiles,
    schema: InputSchema,
    batches: BatchReader,
    *,
    reasons: bool = False,
) -> DataFrame:
    """Make ``PAGES`` of Parquet files, which tasks read themselves.

    Args:
        spark: the session.
        files: the files.
        schema: how they name items.
        batches: where tasks read batches.
        reasons: skip rows with a ``reason``, which are failures.
    """
    splits = files.splits(most_tasks(spark))
    coalesce = coalesce_task(batches, schema)

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        for record in records:
            for number in record.column(0).to_pylist():
                yield from coalesce(files.read(splits[number], schema, reasons=reasons))

    return spark.range(0, len(splits), 1, max(1, len(splits))).mapInArrow(run, PAGES)
