"""fanin fanout: sending, malformed rows, and messages that the queue rejects."""

from __future__ import annotations

import io

import boto3
import pytest
from moto import mock_aws
from rich.console import Console
from typer.testing import CliRunner

from fanin.adapters.backoff import Backoff
from fanin.cli.exits import ExitCode
from fanin.cli.main import app
from fanin.cli.session import Session
from fanin.domain.batch import State


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
        # And its message is kept, so that it can be redriven
        assert (failure.source, tracker.kept_message(failure.item).body) == (queue, '{"n": "7"}')
        assert tracker.status(result.document["batch_id"]).batch.state is State.CLOSED

    def test_a_missing_file_is_wrong_usage(self, run, queue):
        assert run("fanout", "/no/such.csv", "--queue", queue).exit_code == ExitCode.USAGE

    def interrupt(self, tracker, monkeypatch, after):
        """Press Ctrl-C once so many requests have been sent."""
        real, calls = tracker.sqs, []

        class Interrupting:
            def send_message_batch(self, **request):
                calls.append(request)
                if len(calls) > after:
                    raise KeyboardInterrupt
                return real.send_message_batch(**request)

        monkeypatch.setitem(tracker.__dict__, "sqs", Interrupting())
        return lambda: monkeypatch.setitem(tracker.__dict__, "sqs", real)

    def test_a_run_with_a_key_goes_on_after_ctrl_c(self, run, tracker, queue, csv_file, monkeypatch):
        # Given a run that was stopped
        command = ("fanout", csv_file, "--queue", queue, "--key", "import 7")
        restore = self.interrupt(tracker, monkeypatch, after=1)
        stopped = run(*command)
        assert stopped.exit_code == ExitCode.INTERRUPTED
        [batch] = tracker.iter_batches("open")
        assert f"batch {batch.batch_id} is open: run the same command again" in stopped.stderr
        # When
        restore()
        result = run(*command, "--json")
        # Then it went on with the same batch and the same items
        assert (result.document["batch_id"], result.document["state"]) == (batch.batch_id, "closed")
        assert tracker.status(batch.batch_id).batch.items == 25
        # When it runs once more, Then nothing is sent
        again = run(*command, "--json")
        assert (again.exit_code, again.document["sent"]) == (0, 0)
        assert "has sent all rows" in again.stderr

    def test_without_a_key_ctrl_c_says_what_became_of_the_batch(
        self, run, tracker, queue, csv_file, monkeypatch
    ):
        self.interrupt(tracker, monkeypatch, after=0)
        stopped = run("fanout", csv_file, "--queue", queue)
        assert stopped.exit_code == ExitCode.INTERRUPTED
        [batch] = tracker.iter_batches("cancelled")
        assert f"stopped after 0 messages were sent; batch {batch.batch_id} is cancelled" in stopped.stderr

    def test_a_deadline_from_now_would_be_another_in_each_run(self, run, queue, csv_file):
        result = run("fanout", csv_file, "--queue", queue, "--key", "k", "--deadline", "2h")
        assert result.exit_code == ExitCode.USAGE
        assert "give --deadline as a time" in result.stderr
