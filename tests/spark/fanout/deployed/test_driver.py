"""A dataset to a queue: every row an item, once, whatever dies on the way."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from fanin.domain.batch import State
from fanin.errors import FaninError, IdempotencyKeyReused, InvalidRequest
from fanin.spark.fanout import driver, sending, staging
from fanin.spark.fanout.driver import fan_out
from fanin.spark.fanout.sending import SendTarget
from fanin.spark.inputs.formats import Dataset
from fanin.spark.jobs.fan_out import JOB
from tests.spark import faults
from tests.spark.consuming import consumers, new_queue, waiting
from tests.spark.datasets import promise
from tests.spark.evaluations import Evaluations
from tests.spark.setting import setting


def job(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    """Run the job in this process: its exit code and its summary."""
    capsys.readouterr()
    code = JOB.main([str(argument) for argument in arguments])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


class TestJob:
    def test_a_dataset_becomes_a_batch_that_its_consumers_complete(self, spark, service, tmp_path, capsys):
        # Given 80 good lines in several files, and three that are not JSON
        for number in range(4):
            lines = [json.dumps({"n": number * 20 + i}) for i in range(20)]
            (tmp_path / f"{number}.json").write_text("\n".join([*lines, *["broken"] * (number % 3)]))
        queue = new_queue()
        command = ("--input", tmp_path / "*.json", "--format", "json", "--queue", queue, "--key", "nightly")
        options = ("--staging", tmp_path / "staging", "--user-key", "mine", "--metadata", "a=b")
        # When the job runs, and consumers work
        with consumers(service.tracker(), queue) as handled:
            code, told = job(capsys, *command, *options)
        row = service.ledger().status(told["batch_id"]).batch
        # Then every good line was an item, was handled, and is done; the bad ones are rejects
        assert (code, told["ok"], told["rows"], told["sent"], told["rejects"]) == (
            0,
            True,
            80,
            80,
            {"malformed": 3},
        )
        assert 8 <= told["requests"] <= 12
        assert handled.times == {json.dumps({"n": n}): 1 for n in range(80)}
        assert len(handled.bodies) == 80
        assert (row.state, row.items, row.user_key, row.metadata["a"]) == (State.COMPLETE, 80, "mine", "b")
        rejected = spark.read.parquet(str(tmp_path / "staging" / "rejects"))
        assert [row["value"] for row in rejected.collect()] == ["broken"] * 3
        # When it runs again, then it sends nothing, and gives the same summary
        again = job(capsys, *command, *options)[1]
        assert waiting(queue) == 0
        assert {**again, "seconds": 0} == {**told, "state": "complete", "seconds": 0}

    @pytest.mark.usefixtures("spark", "service")
    @pytest.mark.parametrize("rejects", ["orders", "data"])
    def test_rejects_that_would_replace_the_dataset_or_other_files_are_refused_before_anything_is_sent(
        self, tmp_path, capsys, *, rejects
    ):
        # Given a dataset that Spark may have written, and a folder of somebody's
        for file in ("data/part-0.json", "orders/day=1/part-0.json"):
            (tmp_path / file).parent.mkdir(parents=True)
            (tmp_path / file).write_text('{"n": 1}\nbroken\n')
        before = {file: file.read_text() for file in tmp_path.rglob("*.json")}
        queue = new_queue()
        # When either is named for the rejects
        options = ("--staging", tmp_path / "staging", "--rejects", tmp_path / rejects)
        code, told = job(capsys, "--input", tmp_path / "data", "--format", "json", "--queue", queue, *options)
        # Then nothing was deleted, opened or sent
        assert (code, told["error"]) == (3, "invalid-request")
        assert f"{tmp_path}/{rejects}" in told["detail"]
        assert {file: file.read_text() for file in tmp_path.rglob("*.json")} == before
        assert "batch_id" not in told
        assert waiting(queue) == 0

    def test_an_empty_dataset_is_complete_at_once(self, spark, service, tmp_path):
        spark.range(0).write.parquet(str(tmp_path / "rows"))
        run = partial(fan_out, Dataset(tmp_path / "rows"), queue=new_queue(), staging=tmp_path / "staging")

        told = run()

        assert told.ok
        assert (told.state, told.rows, told.sent, told.requests, told.rejects) == ("complete", 0, 0, 0, {})

    def test_rows_that_are_not_the_same_twice_are_evaluated_once(self, spark, service, tmp_path):
        # Given a DataFrame of which every row has a message if it is evaluated an even number of times
        evaluations, rows = Evaluations(tmp_path / "evaluations"), spark.range(0, 40, 1, 3)
        flaky = evaluations.counted(
            rows, "id", "text", lambda one, number: f"row {one}" if (one + number) % 2 else None
        )
        queue = new_queue()
        run = partial(fan_out, flaky, queue=queue, staging=tmp_path / "staging", body="text")
        # When it is sent
        with consumers(service.tracker(), queue) as handled:
            told = run()
        # Then each row was evaluated once, and is a message or a reject
        assert evaluations.times == {str(n): 1 for n in range(40)}
        assert set(handled.times) == {f"row {n}" for n in range(1, 40, 2)}
        left = spark.read.parquet(str(tmp_path / "staging" / "rejects")).collect()
        assert {json.loads(row["value"])["id"] for row in left} == set(range(0, 40, 2))
        assert told.accounted == {"in": 40, "sent": 20, "rejected": 20}
        # And another run says the same
        assert run().accounted == told.accounted
        assert set(evaluations.times.values()) == {1}

    def test_results_that_do_not_account_for_every_row_are_an_error(self, spark, service, tmp_path):
        # Given a fan-out whose results were lost in part
        spark.range(0, 30, 1, 3).write.parquet(str(tmp_path / "rows"))
        run = partial(fan_out, Dataset(tmp_path / "rows"), queue=new_queue(), staging=tmp_path / "staging")
        run()
        next((tmp_path / "staging").glob("sent-*/part-*.parquet")).unlink()

        with pytest.raises(InvalidRequest, match=r"30 rows are staged, .* lost or doubled some"):
            run()

    def test_a_footer_that_promises_more_rows_than_there_are_is_refused_before_anything_is_sent(
        self, spark, service, tmp_path
    ):
        promise(tmp_path / "rows.parquet", rows=1_000, promised=1_200)
        queue = new_queue()

        with pytest.raises(
            InvalidRequest, match=r"rows\.parquet says that it has 1200 rows, .* parts have 1000"
        ):
            fan_out(Dataset(tmp_path / "rows.parquet"), queue=queue, staging=tmp_path / "st")
        assert waiting(queue) == 0
        assert not list((tmp_path / "st").glob("rows-*"))

    def test_what_the_queue_refuses_has_failed_and_the_batch_ends(self, spark, service, tmp_path):
        # Given a row that is larger than the queue takes, one that no queue takes, and one that is right
        rows = [("small",), ("y" * 3_000,), ("z" * 300_000,)]
        spark.createDataFrame(rows, "text string").write.parquet(str(tmp_path / "rows"))
        queue = new_queue(MaximumMessageSize="1024")
        run = partial(
            fan_out, Dataset(tmp_path / "rows"), queue=queue, staging=tmp_path / "staging", body="text"
        )
        # When they are sent, and the right one is handled
        with consumers(service.tracker(), queue, 1) as handled:
            told = run()
        progress = service.ledger().status(told.batch_id)
        # Then one item is done and one has failed
        assert list(handled.times) == ["small"]
        assert (told.rows, told.sent, told.rejects) == (2, 1, {"unsent": 1, "too_large": 1})
        assert (progress.batch.state, progress.batch.items) == (State.COMPLETE, 2)
        (failure,) = service.tracker().iter_failures(told.batch_id)
        assert failure.reason.startswith("not sent: ")
        # And the failed one keeps its message, with the queue that it was for
        message = service.tracker().kept_message(failure.item)
        assert (failure.source, failure.kept) == (queue, True)
        assert message is not None
        assert message.body == "y" * 3_000

    def test_a_key_or_a_folder_of_another_fan_out_is_refused(self, spark, service, tmp_path):
        # Given a fan-out
        spark.range(3).write.parquet(str(tmp_path / "rows"))
        dataset, queue = Dataset(tmp_path / "rows"), new_queue()
        first = {"queue": queue, "staging": tmp_path / "staging", "key": "mine"}
        batch_id = fan_out(dataset, **first).batch_id
        # When another takes its key, or its folder, then it is refused and nothing is sent
        with pytest.raises(IdempotencyKeyReused, match="or use a new key"):
            fan_out(dataset, **first | {"staging": tmp_path / "other"})
        with pytest.raises(IdempotencyKeyReused, match=r"with other options, .* give those of before"):
            fan_out(dataset, **first, user_key="other")
        other = rf"body was None, and is now 'id'\. .*`fanin cancel {batch_id}` ends it"
        with pytest.raises(InvalidRequest, match=other):
            fan_out(dataset, **first, body="id")
        assert waiting(queue) == 3

    def test_a_queue_that_is_not_there_is_told_before_anything_is_staged(self, service, tmp_path, capsys):
        (tmp_path / "rows.csv").write_text("n\n1\n")
        command = ("--input", tmp_path / "rows.csv", "--queue", f"{new_queue()}x")

        code, told = job(capsys, *command, "--staging", tmp_path / "staging")

        assert (code, told["error"]) == (3, "not-configured")
        assert "This run has staged and sent nothing" in told["detail"]
        assert "batch_id" not in told
        assert not (tmp_path / "staging").exists()

    @pytest.mark.parametrize("wrong", [{"lifetime": 5}, {"parent_item": "12:ab:0"}])
    def test_what_no_batch_can_be_opened_with_is_told_before_anything_is_staged(
        self, spark, service, tmp_path, wrong
    ):
        with pytest.raises(FaninError, match=r"lifetime must be|12:ab"):
            fan_out(spark.range(3), queue=new_queue(), staging=tmp_path / "staging", **wrong)
        assert not (tmp_path / "staging").exists()

    def test_other_data_at_the_same_path_is_another_fan_out(self, spark, service, tmp_path, capsys):
        # Given a fan-out of yesterday's file
        file, queue = tmp_path / "rows.csv", new_queue()
        file.write_text("n\n1\n2\n")
        command = ("--input", file, "--queue", queue, "--staging", tmp_path / "staging")
        job(capsys, *command)
        # When today's file has its place, then the staging does not serve for it
        file.write_text("n\n3\n4\n5\n")
        code, told = job(capsys, *command)
        assert (code, told["error"]) == (3, "invalid-request")
        assert "other data at the same place" in told["detail"]
        assert waiting(queue) == 2

    def test_too_many_rejects_send_nothing(self, service, tmp_path, capsys):
        # Given lines of which one is JSON
        (tmp_path / "rows.json").write_text("broken\n{}")
        queue = new_queue()
        command = ("--input", tmp_path / "rows.json", "--queue", queue, "--staging", tmp_path / "s")
        # When none may be left out, then it says so, has sent nothing, and the line can be looked at
        code, told = job(capsys, *command, "--max-rejects", "0")
        assert (code, told["error"], told["rejects"], told["rows"]) == (
            1,
            "too-many-rejects",
            {"malformed": 1},
            2,
        )
        assert json.loads((tmp_path / "s" / "summary.json").read_text()) == told
        assert pq.read_table(tmp_path / "s" / "rejects")["value"].to_pylist() == ["broken"]
        assert waiting(queue) == 0
        assert not [one for one in (tmp_path / "s").glob("rows-*") if not one.name.endswith("left-out")]
        # When more may be left out, then the others are sent
        code, told = job(capsys, *command, "--max-rejects", "100%")
        assert (code, told["rejects"], waiting(queue)) == (0, {"malformed": 1}, 1)


def test_a_batch_that_somebody_ends_before_it_gets_its_items_is_told(spark, service, tmp_path):
    rows, queue, cancel = spark.range(3), new_queue(), service.tracker().cancel
    done = fan_out(rows, service, queue=queue, staging=tmp_path, opened=lambda batch: cancel(batch.batch_id))
    assert (done.ok, done.state, waiting(queue)) == (False, State.CANCELLED, 0)
    assert "none of its rows was sent; to send them, name another --key" in done.detail


def test_tasks_read_and_send_by_the_thousand_in_any_session(spark, service, tmp_path, monkeypatch):
    name, queue, conf = "spark.sql.execution.arrow.maxRecordsPerBatch", new_queue(), spark.conf
    pages, staged, send = [], driver.stage, driver.send
    monkeypatch.setattr(driver, "stage", lambda *a, **b: pages.append(conf.get(name)) or staged(*a, **b))
    monkeypatch.setattr(driver, "send", lambda *given: pages.append(conf.get(name)) or send(*given))
    with setting(spark, name, "10000"):
        fan_out(spark.range(3), service, queue=queue, staging=tmp_path)
        assert (pages, conf.get(name)) == (["1000", "1000"], "10000")


class TestDeaths:
    def test_a_task_that_dies_twice_in_the_middle_changes_nothing(
        self, spark, service, tmp_path, monkeypatch
    ):
        # Given tasks of which one dies twice when it has sent some of its messages
        rows, deaths, queue = 300, tmp_path / "deaths", new_queue()
        spark.range(0, rows, 1, 2).write.parquet(str(tmp_path / "rows"))
        deaths.mkdir()
        send_pages, through = sending.send_pages, faults.at_page(2, str(deaths))
        monkeypatch.setattr(sending, "send_pages", lambda pages, target: send_pages(through(pages), target))
        monkeypatch.setattr(driver, "_PAGES", {"spark.sql.execution.arrow.maxRecordsPerBatch": "50"})
        # When they send, and consumers work
        run = partial(fan_out, Dataset(tmp_path / "rows"), queue=queue, staging=tmp_path / "staging")
        with consumers(service.tracker(), queue) as handled:
            told = run()
        # Then it did, and the result is as if it had not
        assert faults.happened(deaths) == faults.dying_of("sending")
        row = service.ledger().status(told.batch_id).batch
        assert (told.rows, told.sent, told.rejects) == (rows, rows, {})
        assert (row.state, row.items) == (State.COMPLETE, rows)
        assert {len(bodies) for bodies in handled.bodies.values()} == {1}
        assert len(handled.bodies) == len(handled.times) == rows
        assert sum(handled.times.values()) > rows

    def test_two_runs_at_once_send_the_same_items_and_both_end_well(
        self, spark, service, tmp_path, monkeypatch
    ):
        # Given two runs of a fan-out whose tasks each read one file. Each run waits before it sends until the
        # other has come as far, so each task has a twin, as it has with speculation
        rows, null, tasks = 100, 3, list[int]()
        monkeypatch.setattr(staging, "ROWS_OF_A_FILE", 25)
        values = "CASE WHEN id >= 3 THEN CAST(id AS STRING) END AS value"
        spark.range(0, rows + null, 1, 2).selectExpr(values).write.parquet(str(tmp_path / "rows"))
        once, both = sending.send, threading.Barrier(2)

        def together(numbered: DataFrame, target: SendTarget) -> DataFrame:
            tasks.append(numbered.rdd.getNumPartitions())
            both.wait(60)
            return once(numbered, target)

        monkeypatch.setattr(driver, "send", together)
        queue = new_queue()
        run = partial(
            fan_out, Dataset(tmp_path / "rows"), queue=queue, staging=tmp_path / "staging", body="value"
        )
        # When they send, and consumers work
        two_tasks = setting(spark, "spark.sql.leafNodeDefaultParallelism", "2")
        with two_tasks, consumers(service.tracker(), queue) as handled, ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(run) for _ in range(2)]
            told, other = (run.result() for run in runs)
        # Then every row came twice, under one item of one batch, which is complete; and both say the same
        batch = service.ledger().status(told.batch_id).batch
        assert (batch.state, batch.items, told.sent, told.rejects) == (
            State.COMPLETE,
            rows,
            rows,
            {"null": null},
        )
        assert replace(other, state=None) == replace(told, state=None)
        assert tasks == [5, 5]
        assert len(handled.bodies) == len(handled.times) == rows
        assert set(handled.times.values()) == {2}
        assert spark.read.parquet(str(tmp_path / "staging" / "rejects")).count() == null
