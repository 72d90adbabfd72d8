"""Parquet files that tasks read themselves: columns go straight into numpy, not through Spark's rows."""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescer import PAGES, coalesce_task
from fanin.spark.ack.input_schema import LONGEST, InputSchema
from fanin.spark.ack.numpy_items import decoded
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.inputs.names import case_sensitive
from fanin.spark.inputs.opening import DAMAGED, contradiction
from fanin.spark.runtime.arrow import ArrowBatches, for_each
from fanin.spark.runtime.places import file_system, place_of
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import most_tasks

_LEAST: Final = 8 << 20  # a task is worth starting for so many bytes of files
_MOST: Final = 1 << 30  # most bytes of files for one task, which has to read them again if it is lost
_ROWS: Final = 1 << 20  # numbers that are read at once
_IDS: Final = 1 << 14  # ids, so few that pyarrow uses the same memory again; fewer than coalescer._PIECE
_PAGE: Final = 64 << 20  # bytes of values, if a row group's are as long as its columns say


class FileSplit(NamedTuple):
    """A range of a file's bytes; it stands for the row groups that have their middle in it.

    If it stood for those that begin in it, its task could have almost a row group more than its share.
    """

    path: str
    start: int
    stop: int


class ParquetFiles:
    """The Parquet files of a dataset; Spark sends this to the tasks with the functions that they run."""

    def __init__(self, found: Sequence[FoundFile], spark: SparkSession) -> None:
        self.exact = case_sensitive(spark)
        self.system = file_system(found[0].path, spark)
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
        """Divide the files among as many tasks as can run at a time, unless they are small or very large."""
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
        """Read the columns that name items, a row group at a time."""
        for split in splits:
            try:
                yield from self._read(*split, schema, [*schema.columns, *(["reason"] if reasons else [])])
            except (pa.ArrowException, OSError) as error:
                raise InvalidRequest(f"{split.path} cannot be read as Parquet: {error}") from error

    def _read(
        self, path: str, start: int, stop: int, schema: InputSchema, wanted: Sequence[str]
    ) -> Iterator[ArrowBatches]:
        with self.system.open_input_file(path) as opened:
            file, size = pq.ParquetFile(opened), opened.size()
            present = {
                name: wanted[place]
                for name in file.schema_arrow.names
                for place, one in enumerate(wanted)
                if one == (name if self.exact else name.lower())
            }
            if wrong := contradiction(file.metadata, path):
                raise InvalidRequest(wrong)
            for group in range(file.num_row_groups):
                metadata = file.metadata.row_group(group)
                if not start <= _middle(metadata, size) < stop:
                    continue
                left = metadata.num_rows
                most = _rows_at_once(metadata, present, _IDS if schema.by_id else _ROWS)
                for rows in file.iter_batches(most, [group], list(present), use_threads=False):
                    left -= rows.num_rows
                    named = [present[name] for name in rows.schema.names]
                    taken = pa.RecordBatch.from_arrays(rows.columns, named) if named else rows
                    yield normalized(taken, schema)
                if left:
                    raise InvalidRequest(
                        f"the footer of {path} promises {left} rows more than there are; {DAMAGED}"
                    )


def _rows_at_once(group: Any, columns: Collection[str], most: int) -> int:
    """So many rows that a page of a row group's values is not larger than the memory for one."""
    sizes = (group.column(place) for place in range(group.num_columns))
    size = sum(int(one.total_uncompressed_size) for one in sizes if one.path_in_schema in columns)
    return max(1, min(most, _PAGE * max(1, int(group.num_rows)) // max(1, size)))


def _middle(group: Any, size: int) -> int:
    """The byte of its file that is in the middle of a row group; it lies in one split only."""
    if not group.num_columns:
        return 0
    first = group.column(0)
    start = int(min(filter(None, [first.dictionary_page_offset, first.data_page_offset])))
    length = sum(int(group.column(place).total_compressed_size) for place in range(group.num_columns))
    return max(0, min(start + length // 2, size - 1))


def normalized(rows: ArrowBatches, schema: InputSchema) -> ArrowBatches:
    """Make the columns that a ``Coalescer`` takes of those that a file has; what it lacks is null."""
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    found = dict[str, Any]()
    for name in schema.columns:
        column = columns.get(name, pa.nulls(rows.num_rows))
        found[name] = _bounded(column) if schema.by_id else column.cast(pa.int64())
    if "reason" in columns:
        found["reason"] = _texts(columns["reason"])
    return pa.RecordBatch.from_pydict(found)


def _texts(column: Any) -> Any:
    """Text, as it is; pandas writes categories, which come as dictionaries."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type in {pa.string(), pa.large_string()}:
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(decoded(column), pa.string())


def _bounded(column: Any) -> Any:
    """Item ids; what is longer than any is cut."""
    items = _texts(column)
    longest = pc.max(pc.binary_length(items)).as_py() or 0
    if longest <= LONGEST:
        return items
    return pa.array([text and text[:LONGEST] for text in decoded(items)], pa.string())


def pages_from_files(
    spark: SparkSession, files: ParquetFiles, schema: InputSchema, service: Service, *, reasons: bool = False
) -> DataFrame:
    """Make ``PAGES`` of Parquet files, which tasks read themselves."""
    splits = files.splits(most_tasks(spark))
    coalesce = coalesce_task(service, schema)

    def read(number: int) -> Iterator[ArrowBatches]:
        return coalesce(files.read(splits[number], schema, reasons=reasons))

    return for_each(spark.range(0, len(splits), 1, max(1, len(splits))), read, PAGES)
