"""The command line with which a stopped run goes on, the rate and the time left, and Ctrl-C."""

import io
import shlex
import signal
import threading

import pytest

from fanin.cli.exits import ExitCode
from fanin.cli.sending import SendMeter, again, asking, stopped
from fanin.cli.session import Session
from fanin.client.producing.resuming import Stop


@pytest.mark.parametrize(
    ("words", "options", "command"),
    [
        (
            "fanout rows.csv --queue u",
            {"skip": 7, "key": "k"},
            "fanin fanout rows.csv --queue u --skip 7 --key k",
        ),
        ("fanout --skip 3 f --key=old", {"skip": 9, "key": "old"}, "fanin fanout f --skip 9 --key old"),
        ("fanout f --skip", {"skip": 1}, "fanin fanout f --skip 1"),
        (
            "--api-url http://h fanout 'a b.csv' --meta 'x=1 2'",
            {},
            "fanin --api-url http://h fanout 'a b.csv' --meta 'x=1 2'",
        ),
        ("fanout f --keyed x", {"key": "k"}, "fanin fanout f --keyed x --key k"),
        ("fanout --queue u -- --f.csv", {"skip": 3}, "fanin fanout --queue u --skip 3 -- --f.csv"),
    ],
)
def test_the_command_line_is_the_same_with_some_other_values(words, options, command):
    assert again(shlex.split(words), **options) == command


def test_a_stopped_run_says_what_to_do(capsys):
    run = Session(local=True, words=("fanout", "f"))
    end = stopped(run, 7, 1_200, "Nothing is sent twice", skip=1_200)
    assert end.exit_code == ExitCode.INTERRUPTED
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "stopped after 1,200 messages of this run; batch 7 is open. Nothing is sent twice:",
        "  fanin fanout f --skip 1200",
        "To give it up instead: fanin --local cancel 7",
    ]


class TestCtrlC:
    def test_the_first_one_asks_and_the_second_one_interrupts(self, capfd):
        stop = Stop()
        before = signal.getsignal(signal.SIGINT)
        with asking(stop):
            signal.raise_signal(signal.SIGINT)
            assert stop.asked
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before
        assert capfd.readouterr().err.count("stopping as soon as") == 1

    def test_in_another_thread_no_signal_comes(self):
        entered = []

        def enter() -> None:
            with asking(Stop()):
                entered.append(signal.getsignal(signal.SIGINT))

        before = signal.getsignal(signal.SIGINT)
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        assert entered == [before]


class TestMeter:
    def test_a_file_says_how_much_is_left(self, tmp_path, monkeypatch):
        # Given a file of which a quarter is read
        now = [0.0]
        monkeypatch.setattr("fanin.cli.sending.time.monotonic", lambda: now[0])
        path = tmp_path / "rows"
        path.write_bytes(b"x" * 400)
        with path.open("rb", buffering=0) as file:
            meter = SendMeter(file, whole=True)
            assert list(meter.counted(iter(["row"] * 10))) == ["row"] * 10
            file.read(100)
            # When these rows are sent in ten seconds
            with meter.drawn(Session(as_json=True)) as progress:
                now[0] = 10.0
                progress(10)
            # Then the rest takes three times as long
            assert meter.describe() == "10 sent, 1/s, about 0:30 left, 0:10 elapsed"

    def test_a_pipe_does_not(self, monkeypatch):
        monkeypatch.setattr("fanin.cli.sending.time.monotonic", lambda: 0.0)
        meter = SendMeter(io.BytesIO(b"x" * 400), whole=True)
        assert meter.describe() == "0 sent, 0:00 elapsed"

    def test_a_line_comes_every_five_seconds(self, monkeypatch, capsys):
        now = [0.0]
        monkeypatch.setattr("fanin.cli.sending.time.monotonic", lambda: now[0])
        meter = SendMeter(io.BytesIO(), whole=False)
        with meter.drawn(Session()) as progress:
            for now[0] in (1.0, 5.0, 6.0, 9.9, 10.0):
                progress(10)
        assert [line.split(", ")[0] for line in capsys.readouterr().err.splitlines()] == [
            "20 sent",
            "50 sent",
        ]
