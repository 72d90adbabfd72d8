"""The rows of a dataset with what became of their items, on the stack."""

from fanin.domain.marks import Failure, ItemRange
from fanin.spark.outcome import outcomes
from tests.spark.evaluations import Evaluations
from tests.spark.items import filled


def test_rows_keep_their_columns_and_get_an_outcome(spark, service, tmp_path):
    # Given a batch with a range done, an item failed, and rows that name items, one twice and one of none,
    # whose other columns are called like those of this library
    _, group = filled(service)
    ledger = service.ledger()
    ledger.mark([ItemRange(group.prefix, 100, 8_000)]).whole()
    ledger.mark([Failure(group[7], "no such customer")]).whole()
    rows = [
        (group[100], 1, "a"),
        (group[7_999], 2, "b"),
        (group[8_000], 3, "c"),
        (group[7], 4, "d"),
        (group[7], 5, "e"),
        ("order 12", 6, "f"),
        (None, 7, "g"),
    ]
    evaluations = Evaluations(tmp_path / "evaluations")
    frame = spark.createDataFrame(rows, "named string, value int, `re``a.son` string").repartition(3)
    frame = evaluations.counted(
        frame, "value", "Item", lambda value, number: None if number else rows[value - 1][0]
    )

    told = outcomes(frame, service).orderBy("value").persist()
    # Then each row is there once, and was evaluated once
    assert told.count() == 7
    assert evaluations.times == {str(row[1]): 1 for row in rows}
    assert told.columns == [*frame.columns, "outcome", "why"]
    assert [tuple(row) for row in told.select("value", "outcome", "why").collect()] == [
        (1, "done", None),
        (2, "done", None),
        (3, "pending", None),
        (4, "failed", "no such customer"),
        (5, "failed", "no such customer"),
        (6, "unknown", "it names no item"),
        (7, "unknown", "it names no item"),
    ]
    # And the result may be asked for again, later
    ledger.mark([group[8_000]]).whole()
    again = outcomes(told, service)
    assert again.columns == told.columns
    assert again.where("value = 3").collect()[0]["outcome"] == "done"
    told.unpersist()
