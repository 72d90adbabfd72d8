"""What makes the messages of a dataset what they are; reading one is tested on Spark."""

import json

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.fanout.bodies import Dataset, _path, read
from fanin.spark.runtime.formats import DatasetFormat


def test_a_description_has_every_option_as_json() -> None:
    dataset = Dataset("rows.csv", DatasetFormat.CSV, "text", "id long", multiline=True)
    assert json.loads(json.dumps(dataset.describe())) == {
        "path": "rows.csv",
        "format": "csv",
        "body": "text",
        "schema": "id long",
        "multiline": True,
    }


@pytest.mark.parametrize("format_", [DatasetFormat.PARQUET, DatasetFormat.JSON])
def test_only_csv_takes_a_schema(format_: DatasetFormat) -> None:
    with pytest.raises(InvalidRequest, match=f"a {format_.value} dataset takes no schema"):
        read(None, Dataset("rows", format_, schema="id long"))  # type: ignore[arg-type]


def test_a_field_of_json_is_looked_up_by_its_name() -> None:
    assert _path("the name.with dots") == "$['the name.with dots']"


def test_a_field_with_a_quote_cannot_be_looked_up() -> None:
    with pytest.raises(InvalidRequest, match="rename it"):
        _path("it's")
