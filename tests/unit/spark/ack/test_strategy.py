"""Whether tasks can read files themselves; how the input decides otherwise is tested on Spark."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.ack.strategy import Strategy, choose_strategy, readable

BY_ID = InputSchema(by_id=True)
ORDINALS = InputSchema(by_id=False, batch_id=7)


def files_of(folder: Path, **columns: pa.Array) -> ParquetFiles:
    pq.write_table(pa.table(columns), folder / "a.parquet")
    return ParquetFiles(str(folder))


@pytest.mark.parametrize(
    ("kind", "fits"),
    [
        (pa.int8(), True),
        (pa.int64(), True),
        (pa.uint32(), True),
        (pa.uint64(), False),
        (pa.float64(), False),
        (pa.string(), False),
    ],
)
def test_ordinals_must_be_whole_numbers_of_64_bits(tmp_path, kind, fits):
    assert readable(files_of(tmp_path, ordinal=pa.array([], kind)), ORDINALS) is fits


@pytest.mark.parametrize(
    ("kind", "fits"),
    [
        (pa.string(), True),
        (pa.large_string(), True),
        (pa.binary(), False),
        (pa.dictionary(pa.int32(), pa.string()), False),
    ],
)
def test_ids_must_be_text(tmp_path, kind, fits):
    assert readable(files_of(tmp_path, item=pa.array([], kind)), BY_ID) is fits


def test_all_columns_must_be_there(tmp_path):
    assert not readable(files_of(tmp_path, ordinal=pa.array([1])), InputSchema(by_id=False))


def test_a_folder_without_files_is_not_readable(tmp_path):
    assert not readable(ParquetFiles(str(tmp_path)), BY_ID)


def test_readable_files_are_chosen_without_asking_spark(tmp_path):
    files = files_of(tmp_path, ordinal=pa.array([1]))
    no_rows = None  # they would be asked
    assert choose_strategy(no_rows, ORDINALS, files) is Strategy.PARQUET
