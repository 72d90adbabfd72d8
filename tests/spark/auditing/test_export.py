"""Exports as a job reads them: exactly what the manifest names."""

from fanin.spark.auditing import export
from fanin.spark.auditing.export import line
from tests.spark.export_writer import write_export

AT = 1_790_000_000_123


def rows(*numbers: int) -> list[str]:
    return [line({"n": {"N": str(n)}}) for n in numbers]


def test_files_that_the_manifest_does_not_name_are_ignored(spark, tmp_path):
    home = write_export(tmp_path, "words", [rows(1, 2), [], rows(3)], at=1, prefix="daily")
    (home / "data" / "stray.json").write_text(rows(9)[0])

    found = export.read(spark, str(home))

    assert found.lines(spark).count() == 3
