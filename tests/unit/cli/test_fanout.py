"""fanin fanout: sending, malformed rows, and messages that the queue rejects."""

import gzip
import io
import itertools
import json
import os
import shlex
import signal
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pyarrow as pa
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from fanin import Tracker
from fanin.adapters.backoff import Backoff
from fanin.cli import fanout
from fanin.cli.exits import ExitCode
from fanin.cli.main import app
from fanin.cli.session import Session
from fanin.client.producing import resuming
from fanin.client.producing.batch import TrackedBatch
from fanin.client.producing.resuming import Stop
from fanin.domain.batch import State
from fanin.errors import ServiceUnavailable
from fanin.names import ITEM_ATTRIBUTE


class TestFanout:
    @pytest.fixture
    def tracker(self):
        return Tracker.in_memory()

    @pytest.fixture
    def queue(self, tracker, monkeypatch):
        monkeypatch.setattr(Backoff, "wait", lambda self, attempt, at_least=None: None)
        return tracker.sqs.create_queue(QueueName="work")["QueueUrl"]

    @pytest.fixture
    def waiting(self, tracker, queue):
        """Counts the messages of the queue."""

        def count():
            answer = tracker.sqs.get_queue_attributes(
                QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages"]
            )
            return int(answer["Attributes"]["ApproximateNumberOfMessages"])

        return count

    @pytest.fixture
    def csv_file(self, tmp_path):
        path = tmp_path / "rows.csv"
        path.write_text("n\n" + "".join(f"{n}\n" for n in range(25)))
        return path

    def test_each_row_is_a_message_of_a_closed_batch(self, waiting, run, tracker, queue, csv_file):
        options = ("--user-key", "k", "--meta", "a=b", "--milestones", "50,90")
        result = run("fanout", csv_file, "--queue", queue, *options, "--json")
        assert result.exit_code == 0, result.stderr
        assert (result.document["sent"], result.document["state"]) == (25, "closed")
        batch = tracker.status(result.document["batch_id"]).batch
        assert (batch.items, batch.user_key, batch.metadata) == (25, "k", {"a": "b"})
        assert batch.milestones == (50, 90)
        assert waiting() == 25

    @pytest.mark.parametrize("fair", [True, False])
    def test_a_fair_fan_out_names_its_batch_as_the_group(self, tracker, run, queue, csv_file, *, fair):
        result = run("fanout", csv_file, "--queue", queue, "--json", *(["--fair"] if fair else []))
        [message] = tracker.sqs.receive_message(
            QueueUrl=queue, MessageSystemAttributeNames=["MessageGroupId"]
        )["Messages"]
        group = message.get("Attributes", {}).get("MessageGroupId")
        assert group == (str(result.document["batch_id"]) if fair else None)

    def test_lost_messages_are_sent_again_by_their_rows(self, run, tracker, queue, csv_file):
        # Given a batch of which all messages were lost, after some items were done
        batch = run("fanout", csv_file, "--queue", queue, "--json").document["batch_id"]
        tracker.sqs.purge_queue(QueueUrl=queue)
        group = tracker.missing(batch).ranges[0].group
        tracker.ack([f"{group}:{n}" for n in range(3, 20)])
        result = run("resend", batch, csv_file, "--queue", queue)
        # Then each missing item has its row
        assert (result.stdout, result.exit_code) == ("8 sent again\n", 0)
        received = tracker.sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )["Messages"]
        found = {
            message["MessageAttributes"][ITEM_ATTRIBUTE]["StringValue"]: message["Body"]
            for message in received
        }
        lost = [0, 1, 2, *range(20, 25)]
        assert found == {f"{group}:{n}": json.dumps({"n": str(n)}) for n in lost}
        # And a file that is too short is told of
        csv_file.write_text("n\n0\n")
        short = run("resend", batch, csv_file, "--queue", queue)
        assert (short.exit_code, "item 1 has no row" in short.stderr) == (1, True)

    def test_of_a_batch_that_has_ended_the_missing_rows_become_a_new_one_once(
        self, waiting, run, tracker, queue, csv_file
    ):
        # Given a batch that has ended with some items missing
        batch = run("fanout", csv_file, "--queue", queue, "--user-key", "k", "--json").document["batch_id"]
        tracker.sqs.purge_queue(QueueUrl=queue)
        tracker.ack([f"{tracker.missing(batch).ranges[0].group}:{n}" for n in range(3, 20)])
        tracker.cancel(batch)
        # When the file is too short, or can be read only once, Then nothing is sent
        short = csv_file.with_name("short.csv")
        short.write_text("n\n0\n")
        assert run("resend", batch, short, "--queue", queue).exit_code == ExitCode.WRONG
        once = run("resend", batch, "-", "--queue", queue, "--format", "csv", stdin="n\n0\n")
        assert (once.exit_code, "is read twice" in once.stderr) == (ExitCode.USAGE, True)
        assert len(tracker.list(user_key="k").batches) == 1
        # When the file is sent again, and once more
        again, repeated = (run("resend", batch, csv_file, "--queue", queue, "--json") for _ in range(2))
        # Then a new batch has an item for each missing row, once
        assert (again.document["sent"], again.exit_code, repeated.exit_code) == (8, 0, 0)
        assert repeated.document == {**again.document, "sent": 0}
        new = tracker.status(again.document["batch_id"]).batch
        assert (new.retry_of, new.user_key, new.items, new.state) == (batch, "k", 8, "closed")
        assert waiting() == 8
        # And that one, whose items are other rows, is not sent from the file; once it has ended, that is told
        assert run("resend", new.batch_id, csv_file, "--queue", queue).exit_code == ExitCode.USAGE
        tracker.cancel(new.batch_id)
        assert run("resend", batch, csv_file, "--queue", queue).exit_code == ExitCode.WRONG

    def test_a_terminal_sees_how_far_it_is(self, tracker, queue, csv_file, monkeypatch):
        monkeypatch.setattr("fanin.cli.sending.time", SimpleNamespace(monotonic=lambda: 0.0))
        screen = io.StringIO()
        session = Session(given=tracker)
        session.stderr = Console(file=screen, force_terminal=True, width=100)
        result = CliRunner().invoke(app, ["fanout", str(csv_file), "--queue", queue], obj=session)
        assert result.exit_code == 0, result.exception
        assert "25 sent" in screen.getvalue()
        assert "0:00 elapsed" in screen.getvalue()

    def test_malformed_rows_are_named_and_exit_with_1(self, run, tracker, queue, csv_file):
        csv_file.write_text("a,b\n1,2\n3\n")
        result = run("fanout", csv_file, "--queue", queue)
        assert result.exit_code == ExitCode.WRONG
        assert "1 sent" in result.stdout
        assert "row 3: 1 fields" in result.stderr

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ('{"a": "1"}\n', "jsonl"),
            ('\n  {"a": "1"}\n', "jsonl"),
            ('\ufeff{"a": "1"}\n', "jsonl"),
            ("a\n1\n", "csv"),
            ("a\r\n1\r\n", "csv"),
            ("\ufeffa\n1\n", "csv"),
        ],
    )
    def test_the_format_of_stdin_is_guessed(self, tracker, run, queue, *, text, kind):
        result = run("fanout", "-", "--queue", queue, "--json", stdin=text)
        assert (result.exit_code, result.document["sent"]) == (0, 1), result.stderr
        assert f"stdin is read as {kind}; pass --format" in result.stderr
        [message] = tracker.sqs.receive_message(QueueUrl=queue)["Messages"]
        assert json.loads(message["Body"]) == {"a": "1"}

    def test_a_format_that_is_given_is_not_guessed(self, run, queue):
        result = run("fanout", "-", "--queue", queue, "--format", "csv", "--json", stdin="{a\n1\n")
        assert (result.exit_code, result.document["sent"]) == (0, 1)
        assert "is read as" not in result.stderr

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (gzip.compress(b"a\n1\n", mtime=0), "pipe it through `gunzip`"),
            (b"\x28\xb5\x2f\xfd rest", "pipe it through `zstdcat`"),
            (b"PAR1 rest", "pass the file's name"),
            ("a\n1\n".encode("utf-16"), "pass --encoding utf-16, and --format"),
            (b'[{"a": 1}]', "`jq -c '.[]'`"),
        ],
    )
    def test_what_stdin_cannot_bring_is_refused_before_a_batch_is_opened(
        self, run, tracker, queue, *, content, said
    ):
        result = run("fanout", "-", "--queue", queue, stdin=content)
        assert (result.exit_code, said in result.stderr) == (ExitCode.USAGE, True), result.stderr
        assert [*tracker.iter_batches("open"), *tracker.iter_batches("cancelled")] == []

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
        result = run("fanout", csv_file, "--queue", queue, "--json")
        assert result.exit_code == ExitCode.WRONG
        assert (result.document["sent"], result.document["state"]) == (24, "closed")
        [failure] = tracker.iter_failures(result.document["batch_id"])
        assert (failure.item, failure.reason) == (result.document["unsent"][0]["item"], "not sent: Odd")
        # And its message is kept, so that it can be redriven
        assert (failure.source, tracker.kept_message(failure.item).body) == (queue, '{"n": "7"}')
        assert tracker.status(result.document["batch_id"]).batch.state is State.CLOSED

    @pytest.mark.parametrize("name", ["/no/such.csv", "/no/such.xyz"])
    def test_a_missing_file_is_named_before_its_format(self, run, queue, name):
        result = run("fanout", name, "--queue", queue)
        assert (result.exit_code, f"{name}: No such file" in result.stderr) == (ExitCode.USAGE, True)

    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("rows.tsv", ()),
            ("rows.csv", ("--delimiter", "\\t")),
            ("rows.tsv.gz", ()),
            ("rows.csv.zst", ("--delimiter", "\t")),
            ("rows.txt", ("--format", "tsv", "--encoding", "latin-1")),
            ("-", ("--format", "tsv")),
        ],
    )
    def test_other_delimiters_encodings_and_packed_files(
        self, tracker, run, queue, tmp_path, *, name, options
    ):
        text = "name\tn\nZürich\t1\n".encode("latin-1" if "latin-1" in options else "utf-8")
        file = tmp_path / name
        if name.endswith(".gz"):
            file.write_bytes(gzip.compress(text))
        elif name.endswith(".zst"):
            with pa.CompressedOutputStream(str(file), "zstd") as out:
                out.write(text)
        elif name != "-":
            file.write_bytes(text)
        result = run("fanout", "-" if name == "-" else file, "--queue", queue, *options, stdin=text)
        assert result.exit_code == 0, result.stderr
        [message] = tracker.sqs.receive_message(QueueUrl=queue)["Messages"]
        assert json.loads(message["Body"]) == {"name": "Zürich", "n": "1"}

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--delimiter", ";;"), "pass one character"),
            (("--encoding", "klingon"), "is not an encoding"),
            (("--format", "jsonl", "--delimiter", ";"), "goes with CSV"),
        ],
    )
    def test_options_that_do_not_fit_are_refused(self, run, queue, csv_file, options, said):
        result = run("fanout", csv_file, "--queue", queue, *options)
        assert (result.exit_code, said in " ".join(result.stderr.split())) == (ExitCode.USAGE, True)

    def test_a_packed_file_that_is_cut_off_is_told_in_one_line(self, run, tracker, queue, tmp_path):
        file = tmp_path / "rows.csv.gz"
        file.write_bytes(gzip.compress(b"n\n" + b"1\n" * 9_999)[:-9])
        result = run("fanout", file, "--queue", queue)
        assert (result.exit_code, "cannot be unpacked" in result.stderr) == (ExitCode.USAGE, True)
        assert [batch.state for batch in tracker.iter_batches("cancelled")] == ["cancelled"]

    @contextmanager
    def interrupted(self, tracker, *, at, times=1):
        """Press Ctrl-C in the request with this number; this one and later ones go on once it was noticed."""
        real, calls = tracker.sqs, itertools.count(1)
        noticed = [threading.Event() for _ in range(times)]

        class Noted(Stop):
            asked = property(lambda _: noticed[0].is_set(), lambda _, asked: asked and noticed[0].set())

        def second(number, frame):
            noticed[1].set()
            raise KeyboardInterrupt

        class Interrupted:
            def send_message_batch(self, **request):
                call = next(calls)
                for event in noticed if call >= at else ():
                    if call == at:
                        os.kill(os.getpid(), signal.SIGINT)
                    assert event.wait(60)
                return real.send_message_batch(**request)

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(tracker.__dict__, "sqs", Interrupted())
            patch.setattr(resuming, "Stop", Noted)
            patch.setattr(signal, "default_int_handler", second)
            yield

    def printed(self, stopped):
        """The command that a run has printed, without the name of the program."""
        (line,) = (line for line in stopped.stderr.splitlines() if line.startswith("  fanin "))
        return shlex.split(line)[1:]

    @pytest.mark.parametrize("options", [("--key", "import 7"), ("--deadline", "2h", "--limit", "40000")])
    def test_ctrl_c_prints_the_command_that_sends_exactly_the_rest(
        self, waiting, run, tracker, queue, csv_file, *, options
    ):
        # Given a run of 300 rows that is stopped
        csv_file.write_text("n\n" + "".join(f"{n}\n" for n in range(300)))
        with self.interrupted(tracker, at=5):
            stopped = run("fanout", csv_file, "--queue", queue, *options)
        assert stopped.exit_code == ExitCode.INTERRUPTED
        [batch] = tracker.iter_batches("open")
        assert f"batch {batch.batch_id} is open. Nothing is sent twice" in stopped.stderr
        before = waiting()
        assert 0 < before < 300
        # When the command that it printed runs
        command = self.printed(stopped)
        result = run(*command, "--json")
        # Then it sent the rest, each message once, with the items of the same batch
        assert (result.exit_code, result.document["state"]) == (0, "closed")
        assert (result.document["batch_id"], result.document["sent"]) == (batch.batch_id, 300 - before)
        assert waiting() == 300
        assert tracker.status(batch.batch_id).batch.items == 300
        # When it runs once more, Then nothing is sent
        again = run(*command, "--json")
        assert (again.exit_code, again.document["sent"]) == (0, 0)
        assert "has sent all rows" in again.stderr

    def test_the_same_command_with_its_key_goes_on_too(self, run, tracker, queue, csv_file):
        # Given a run that was stopped, and whose items are not done
        command = ("fanout", csv_file, "--queue", queue, "--key", "k", "--json")
        csv_file.write_text("n\n" + "".join(f"{n}\n" for n in range(300)))
        with self.interrupted(tracker, at=3):
            assert run(*command).exit_code == ExitCode.INTERRUPTED
        # When it runs again without --skip, Then all are sent again, under the same items
        result = run(*command)
        assert (result.document["sent"], result.document["state"]) == (300, "closed")
        assert tracker.status(result.document["batch_id"]).batch.items == 300

    def test_a_second_ctrl_c_stops_at_once(self, run, tracker, queue, csv_file):
        csv_file.write_text("n\n" + "".join(f"{n}\n" for n in range(300)))
        with self.interrupted(tracker, at=5, times=2):
            stopped = run("fanout", csv_file, "--queue", queue)
        assert stopped.exit_code == ExitCode.INTERRUPTED
        assert "may be sent again, and count once" in stopped.stderr
        result = run(*self.printed(stopped), "--json")
        assert (result.exit_code, result.document["state"]) == (0, "closed")
        assert tracker.status(result.document["batch_id"]).batch.items == 300

    def test_a_batch_that_ended_before_it_was_closed_may_lack_rows(
        self, waiting, run, tracker, queue, csv_file
    ):
        # Given a batch of the key that was cancelled while rows were sent
        with pytest.raises(RuntimeError), tracker.batch(key="k", on_error="leave") as batch:
            raise RuntimeError
        tracker.cancel(batch.id)
        # When the run is repeated, Then it does not say that all rows were sent
        result = run("fanout", csv_file, "--queue", queue, "--key", "k")
        assert (result.exit_code, waiting()) == (ExitCode.REFUSED, 0)
        assert "may not have sent all rows" in " ".join(result.stderr.split())
        # But a batch that was closed first had them all
        with tracker.batch(key="other") as closed:
            closed.add(1)
        tracker.cancel(closed.id)
        result = run("fanout", csv_file, "--queue", queue, "--key", "other", "--json")
        assert (result.exit_code, result.document["sent"]) == (0, 0)

    @pytest.mark.parametrize("error", [ServiceUnavailable("away"), KeyboardInterrupt()])
    def test_a_close_that_fails_is_all_that_is_left(
        self, waiting, run, tracker, csv_file, *, queue, monkeypatch, error
    ):
        # Given a service that goes away when all rows are sent
        def fail(_self, *, when):
            raise error

        monkeypatch.setattr(TrackedBatch, "close", fail)
        result = run("fanout", csv_file, "--queue", queue)
        # Then the run says what to do, and not to send them again
        assert result.exit_code != 0
        [batch] = tracker.iter_batches("open")
        assert "all rows were sent; do not send them again." in result.stderr
        assert f"close the batch: fanin close {batch.batch_id}\n" in result.stderr
        assert waiting() == 25

    def test_ctrl_c_while_it_waits_says_how_to_go_on(self, run, queue, csv_file, monkeypatch):
        def interrupt(*_args, **_options):
            raise KeyboardInterrupt

        monkeypatch.setattr(fanout, "follow_all", interrupt)
        result = run("fanout", csv_file, "--queue", queue, "--wait")
        assert result.exit_code == ExitCode.INTERRUPTED
        assert "to go on watching: fanin watch " in result.stderr

    @pytest.mark.parametrize("encoding", ["hex", "rot13", "no-such", "\ud800"])
    def test_what_is_no_encoding_of_text_is_refused(self, encoding):
        with pytest.raises(typer.BadParameter, match="is not an encoding"):
            fanout.reading("rows.csv", io.BufferedReader(io.BytesIO()), None, None, encoding)

    def test_skip_needs_a_key(self, run, queue, csv_file):
        result = run("fanout", csv_file, "--queue", queue, "--skip", 3)
        assert (result.exit_code, "needs the --key" in result.stderr) == (ExitCode.USAGE, True)

    def test_a_deadline_from_now_counts_from_now(self, run, tracker, queue, csv_file, monkeypatch):
        now = fanout.now_ms()
        monkeypatch.setattr(fanout, "now_ms", lambda: now)
        result = run("fanout", csv_file, "--queue", queue, "--deadline", "2h", "--json")
        batch = tracker.status(result.document["batch_id"]).batch
        assert batch.deadline == now + 2 * 3_600_000

    def test_a_deadline_from_now_would_be_another_in_each_run(self, run, queue, csv_file):
        result = run("fanout", csv_file, "--queue", queue, "--key", "k", "--deadline", "2h")
        assert result.exit_code == ExitCode.USAGE
        assert "give --deadline as a time" in result.stderr
