"""Parquet files that tasks read themselves: columns go straight into numpy, not through Spark's rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import LONGEST, InputSchema
from fanin.spark.inputs.footers import DAMAGED, contradiction
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.runtime.arrow import ArrowBatches
from fanin.spark.runtime.places import file_system, place_of

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


_LARGEST: Final = pa.scalar((1 << 63) - 1, pa.uint64())
"""Of the numbers that fit into 64 bits with a sign."""
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
    numbers = [_numbers(columns.get(name, empty), name, path) for name in schema.columns]
    try:
        whole = [column.cast(pa.int64()) for column in numbers]
    except pa.ArrowInvalid:
        return _without_large(numbers, schema)
    return pa.RecordBatch.from_arrays(whole, schema.columns)


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


def _without_large(numbers: Sequence[Any], schema: InputSchema) -> ArrowBatches:
    """Numbers of which some have more than 63 bits: these become null, and their rows have ``raw``."""
    raw: list[str | None] = [None] * len(numbers[0])
    whole = []
    for column in numbers:
        fitting = column
        if column.type == pa.uint64():
            large = pc.fill_null(pc.greater(column, _LARGEST), False)
            for row in pc.indices_nonzero(large).to_pylist():
                raw[row] = schema.row_json(numbers[0][row].as_py(), numbers[-1][row].as_py())
            fitting = pc.if_else(large, None, column)
        whole.append(fitting.cast(pa.int64()))
    return pa.RecordBatch.from_arrays([*whole, pa.array(raw, pa.string())], [*schema.columns, "raw"])


def _bounded(items: Any) -> Any:
    """Item ids; what is longer than any is cut."""
    longest = pc.max(pc.binary_length(items)).as_py() or 0
    if longest <= LONGEST:
        return items
    try:
        return pc.utf8_slice_codeunits(items, 0, LONGEST)
    except pa.ArrowInvalid:
        return pc.utf8_slice_codeunits(decoded(items), 0, LONGEST)


def decoded(items: Any) -> Any:
    """Bytes as text, where some are not UTF-8: a character stands for these, which no id has."""
    texts = items.cast(pa.large_binary()).to_pylist()
    return pa.array(
        [None if text is None else text.decode(errors="replace") for text in texts], pa.large_string()
    )
