"""The audit job as it is run on the tables of a deployed stack."""

from pathlib import Path

import pyarrow.parquet as pq

from fanin.domain.batch import OpenBatch
from fanin.domain.marks import Done, ItemRange
from fanin.spark.jobs.audit import JOB
from fanin.spark.runtime.service import Service
from tests.spark import faults
from tests.spark.tables import FULL, word_row


def table(folder: Path, name: str) -> list[dict[str, object]]:
    return list(pq.read_table(folder / name).to_pylist())


def test_a_scan_says_what_the_api_says_and_repairs_once_though_its_tasks_die(
    spark, stack, service, tmp_path, monkeypatch
):
    # Given a stack with batches in work
    ledger, client = service.ledger(), stack.client("dynamodb")
    rows = []
    for items, done in ((5, 2), (64, 64), (5000, 4100), (300_000, 262_150)):
        row = ledger.open(OpenBatch(user_key=f"{items}"))
        group = ledger.add(row.batch_id, items)
        ledger.mark([ItemRange(group.prefix, 0, done)]).whole()
        rows.append(ledger.close(row.batch_id).batch_id)
    # And one with totals
    summed = ledger.open(OpenBatch(totals=("rows", "cents"))).batch_id
    group = ledger.add(summed, 200)
    ledger.mark([Done(item, {"rows": n, "cents": -1}) for n, item in enumerate(group)]).whole()
    # And one that is all done, in which the mark above its last word was lost by a crash. That word is not 0,
    # so the stream of finished words does not tell of it
    lost = ledger.open(OpenBatch(user_key="lost"))
    group = ledger.add(lost.batch_id, 70)
    ledger.mark(list(group[:64])).whole()
    ledger.close(lost.batch_id)
    last = f"{lost.batch_id}/0/1"
    table_name = dict(service.environment)["FANIN_WORDS_TABLE"]
    client.put_item(TableName=table_name, Item=word_row(last, FULL - 63, lost.expires_at))
    # When the job scans and repairs, its tasks dying on the way
    output, deaths = tmp_path / "audit", tmp_path / "deaths"
    dying = faults.DyingService.of(service, deaths)
    monkeypatch.setattr(Service, "from_env", lambda: dying)
    arguments = ["--scan", "--segments=3", "--repair", f"--output={output}"]
    summary = JOB.run(spark, JOB.parser().parse_args(arguments))
    # Then every death happened, and all is well in the end; the repair was done by one that could not tell
    assert faults.happened(deaths) == faults.dying_of("scan", "verify")
    assert (summary["ok"], summary["verified"], summary["repaired"]) == (True, 1, 0), summary
    # And what the scan saw is what the API says
    audited = {row["batch_id"]: row for row in table(output, "batches")}
    for batch_id in rows:
        progress = ledger.status(batch_id, exact=True)
        assert audited[batch_id]["done"] == progress.done_min
        assert audited[batch_id]["state"] == progress.batch.state
        found = [
            (row["start"], row["stop"]) for row in table(output, "missing") if row["batch_id"] == batch_id
        ]
        assert sorted(found) == [(part.start, part.stop) for part in ledger.missing(batch_id).ranges]
    assert dict(audited[summed]["totals"]) == {"rows": sum(range(200)), "cents": -200}
    # And the batch whose mark was lost is complete, by one move that another repair leaves alone
    healed = service.connection().client.get_item(
        TableName=dict(service.environment)["FANIN_BATCHES_TABLE"],
        Key={"batch_id": {"N": str(lost.batch_id)}},
        ConsistentRead=True,
    )["Item"]
    assert healed["state"] == {"S": "complete"}
    found_rows = [row for row in table(output, "findings") if row["batch_id"] == lost.batch_id]
    assert {(row["kind"], row["word_id"]) for row in found_rows} == {("lost_parent", last), ("stuck", None)}
    again = ledger.verify(lost.batch_id, repair=True)
    assert (again.disagreements, again.pending) == ((), 0)
    assert again.batch.ended_at == int(healed["ended_at"]["N"])
