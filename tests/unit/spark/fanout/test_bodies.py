"""What makes the messages of a dataset what they are; reading one is tested on Spark."""

import json

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.fanout.bodies import Dataset, read
from fanin.spark.inputs.formats import DatasetFormat, Dialect


def test_a_description_has_every_option_as_json() -> None:
    dialect = Dialect(delimiter=";", multiline=True)
    dataset = Dataset("rows.csv", DatasetFormat.CSV, "text", "id long", dialect)
    assert json.loads(json.dumps(dataset.describe())) == {
        "path": "rows.csv",
        "format": "csv",
        "body": "text",
        "schema": "id long",
        "multiline": True,
        "delimiter": ";",
    }


@pytest.mark.parametrize("format_", [DatasetFormat.PARQUET, DatasetFormat.JSON])
def test_only_csv_takes_a_schema(format_: DatasetFormat) -> None:
    with pytest.raises(InvalidRequest, match=f"a {format_.value} dataset takes no schema"):
        read(None, Dataset("rows", format_, schema="id long"))  # type: ignore[arg-type]


def test_a_format_may_be_named_by_its_text() -> None:
    assert Dataset("rows", "csv") == Dataset("rows", DatasetFormat.CSV)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="there is no format 'xml'; name one of parquet, csv, "):
        Dataset("rows", "xml")  # type: ignore[arg-type]
