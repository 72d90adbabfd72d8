"""The command fanout: files of each format, what is malformed, and what the queue does not take."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import boto3
import pyarrow as pa
import pytest
from moto import mock_aws
from pyarrow import parquet
from rich.console import Console
from typer.testing import CliRunner

from fanin.adapters.backoff import Backoff
from fanin.cli import rows
from fanin.cli.exits import ExitCode
from fanin.cli.main import app
from fanin.cli.rows import Malformed, RowFormat, bodies
from fanin.cli.session import Session
from fanin.domain.batch import State
from fanin.errors import InvalidRequest


def read(data, kind, *, most_bytes=10_000):
    malformed = Malformed()
    return list(bodies(io.BytesIO(data), kind, malformed, most_bytes=most_bytes)), malformed


class TestRows:
    def test_csv(self):
        found, malformed = read('\ufeffname,n\n"Zürich, ZH",1\n\n"two\nlines",2\n'.encode(), RowFormat.CSV)
        assert [json.loads(body) for body in found] == [
            {"name": "Zürich, ZH", "n": "1"},
            {"name": "two\nlines", "n": "2"},
        ]
        assert malformed.count == 0

    def test_csv_names_malformed_rows_and_goes_on(self):
        found, malformed = read(b'a,b\n1,2\n1\n1,2,3\n\xff,4\n"x"y,5\n5,6\n', RowFormat.CSV)
        assert [json.loads(body)["b"] for body in found] == ["2", "6"]
        assert [row for row, _ in malformed.named] == [3, 4, 5, 6]
        assert malformed.named[0][1] == "1 fields; the header has 2"
        assert malformed.named[2][1] == "not UTF-8"

    def test_csv_with_a_column_twice_is_refused(self):
        with pytest.raises(InvalidRequest, match="twice"):
            read(b"a,a\n1,2\n", RowFormat.CSV)

    def test_an_empty_file_has_no_rows(self):
        assert read(b"", RowFormat.CSV)[0] == read(b"", RowFormat.JSONL)[0] == []

    def test_json_lines_pass_as_they_are(self):
        found, malformed = read(b'{"a": 1.10}\n\n  {"a":{"b":[]}}\r\n', RowFormat.JSONL)
        assert found == ['{"a": 1.10}', '{"a":{"b":[]}}']
        assert malformed.count == 0

    @pytest.mark.parametrize("line", [b"{", b"[1]", b"1", b'{"a": NaN}', b'{"a": "\xff"}', b'{"a": 1} {}'])
    def test_json_lines_name_malformed_ones_and_go_on(self, line):
        found, malformed = read(b'{"a": 1}\n' + line + b'\n{"a": 2}\n', RowFormat.JSONL)
        assert found == ['{"a": 1}', '{"a": 2}']
        assert [row for row, _ in malformed.named] == [2]

    def test_rows_too_large_for_a_message_are_malformed(self):
        found, malformed = read(b'{"a": "%s"}\n{"a": 1}\n' % (b"x" * 100), RowFormat.JSONL, most_bytes=50)
        assert found == ['{"a": 1}']
        assert malformed.named == [(1, "109 bytes; a message may have 50")]

    def test_parquet(self):
        table = pa.table(
            {
                "n": [1, 2],
                "f": [1.5, float("nan")],
                "d": [date(2026, 11, 21), None],
                "t": [datetime(2026, 11, 21, 9, 40, tzinfo=UTC)] * 2,
                "m": [Decimal("1.10"), Decimal(2)],
            }
        )
        sink = pa.BufferOutputStream()
        parquet.write_table(table, sink)
        found, malformed = read(sink.getvalue().to_pybytes(), RowFormat.PARQUET)
        assert [json.loads(body) for body in found] == [
            {"n": 1, "f": 1.5, "d": "2026-11-21", "t": "2026-11-21 09:40:00+00:00", "m": "1.10"}
        ]
        assert [row for row, _ in malformed.named] == [2]

    def test_parquet_with_bytes_has_no_json(self):
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.table({"b": [b"\x00"]}), sink)
        found, malformed = read(sink.getvalue().to_pybytes(), RowFormat.PARQUET)
        assert (found, malformed.count) == ([], 1)

    def test_what_is_no_parquet_is_refused(self):
        with pytest.raises(InvalidRequest, match="not Parquet"):
            read(b"PAR0" * 10, RowFormat.PARQUET)

    def test_names_of_malformed_rows_are_bounded(self):
        _, malformed = read(b"x\n" * 1_000, RowFormat.JSONL)
        assert (malformed.count, len(malformed.named)) == (1_000, 100)

    def test_the_format_is_told_by_the_name(self):
        assert rows.format_of("Airports.CSV") is RowFormat.CSV
        assert rows.format_of("a.ndjson") is RowFormat.JSONL
        with pytest.raises(InvalidRequest, match="--format"):
            rows.format_of("rows.txt")


class TestFanout:
    @pytest.fixture
    def queue(self, monkeypatch):
        monkeypatch.setattr(Backoff, "wait", lambda self, attempt, at_least=None: None)
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        with mock_aws():
            yield boto3.client("sqs").create_queue(QueueName="work")["QueueUrl"]

    def waiting(self, queue):
        answer = boto3.client("sqs").get_queue_attributes(
            QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages"]
        )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    @pytest.fixture
    def csv_file(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text("n\n" + "".join(f"{n}\n" for n in range(25)))
        return path

    def test_each_row_is_a_message_of_a_closed_batch(self, run, tracker, queue, csv_file):
        result = run("fanout", csv_file, "--queue", queue, "--user-key", "k", "--meta", "a=b", "--json")
        assert result.exit_code == 0, result.stderr
        assert (result.document["sent"], result.document["state"]) == (25, "closed")
        batch = tracker.status(result.document["batch_id"]).batch
        assert (batch.items, batch.user_key, batch.metadata) == (25, "k", {"a": "b"})
        assert self.waiting(queue) == 25

    def test_a_terminal_sees_how_far_it_is(self, tracker, queue, csv_file):
        screen = io.StringIO()
        session = Session(given=tracker)
        session.stderr = Console(file=screen, force_terminal=True, width=100)
        result = CliRunner().invoke(app, ["fanout", str(csv_file), "--queue", queue], obj=session)
        assert result.exit_code == 0, result.exception
        assert "25/?" in screen.getvalue()

    def test_malformed_rows_are_named_and_exit_with_1(self, run, tracker, queue, csv_file):
        csv_file.write_text("a,b\n1,2\n3\n")
        result = run("fanout", csv_file, "--queue", queue)
        assert result.exit_code == ExitCode.WRONG
        assert "1 sent" in result.stdout
        assert "row 3: 1 fields" in result.stderr

    def test_stdin_needs_a_format(self, run, queue):
        assert run("fanout", "-", "--queue", queue, stdin="{}\n").exit_code == ExitCode.REFUSED
        result = run("fanout", "-", "--queue", queue, "--format", "jsonl", "--json", stdin='{"a": 1}\n')
        assert (result.exit_code, result.document["sent"]) == (0, 1)

    def test_wait_follows_the_batch_to_its_end(self, run, tracker, queue, tmp_path):
        empty = tmp_path / "rows.jsonl"
        empty.touch()
        result = run("fanout", empty, "--queue", queue, "--wait", "--json")
        assert (result.exit_code, result.document["state"]) == (0, "complete")

    def test_an_unknown_queue_cancels_the_batch(self, run, tracker, queue, csv_file):
        result = run("fanout", csv_file, "--queue", queue + "x")
        assert result.exit_code == ExitCode.DENIED
        [batch] = tracker.iter_batches("cancelled")
        assert f"batch {batch.batch_id}" in result.stderr

    def test_messages_that_are_not_taken_become_failed_items(
        self, run, tracker, queue, csv_file, monkeypatch
    ):
        # Given: a queue that refuses the seventh row
        real = tracker.sqs

        class Refusing:
            def send_message_batch(self, **request):
                entries = request["Entries"]
                bad = [entry for entry in entries if entry["MessageBody"] == '{"n": "7"}']
                good = [entry for entry in entries if entry not in bad]
                answer = real.send_message_batch(QueueUrl=request["QueueUrl"], Entries=good)
                failed = [{"Id": entry["Id"], "SenderFault": True, "Code": "Odd"} for entry in bad]
                return {**answer, "Failed": failed}

        monkeypatch.setitem(tracker.__dict__, "sqs", Refusing())
        # When
        result = run("fanout", csv_file, "--queue", queue, "--json")
        # Then
        assert result.exit_code == ExitCode.WRONG
        assert (result.document["sent"], result.document["state"]) == (24, "closed")
        [failure] = tracker.iter_failures(result.document["batch_id"])
        assert (failure.item, failure.reason) == (result.document["unsent"][0]["item"], "not sent: Odd")
        assert tracker.status(result.document["batch_id"]).batch.state is State.CLOSED

    def test_a_missing_file_is_wrong_usage(self, run, queue):
        assert run("fanout", "/no/such.csv", "--queue", queue).exit_code == ExitCode.USAGE
