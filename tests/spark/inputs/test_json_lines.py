"""JSON, read strictly."""

from tests.spark.datasets import opened
from tests.spark.setting import setting


def test_fields_are_named_without_regard_to_case_unless_the_session_does(spark, tmp_path):
    lines = ['{"item": "a", "Reason": "torn"}', '{"item": "b", "reason": null, "REASON": "x"}']
    (tmp_path / "a.json").write_text("\n".join(lines))

    assert opened(spark, tmp_path / "a.json") == [("a", "torn"), lines[1]]
    with setting(spark, "spark.sql.caseSensitive", "true"):
        assert opened(spark, tmp_path / "a.json") == [("a", None), ("b", None)]


def test_two_objects_on_a_line_are_not_one(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"item": "a"}{"item": "b"}\n {"item": "c", "reason": 1.10} \n')
    assert opened(spark, tmp_path / "a.json") == [("c", "1.10"), '{"item": "a"}{"item": "b"}']


def test_a_field_that_is_there_twice_is_neither_of_both(spark, tmp_path):
    # Given two items in an object, a field twice that nobody asks for, and one below a field
    twice, other = '{"item": "a", "item": "b"}', '{"item": "c", "x": 1, "x": 2}'
    (tmp_path / "a.json").write_text(f'{twice}\n{other}\n{{"item": {{"x": 1, "x": 2}}}}')

    assert opened(spark, tmp_path / "a.json") == [("c", None), ('{"x": 1, "x": 2}', None), twice]
