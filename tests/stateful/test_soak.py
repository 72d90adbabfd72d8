"""Playing seeds for a long time: how many, for how long, and which first."""

from pathlib import Path

import pytest

from tests.stateful import soak as soaking
from tests.stateful.model import Broken
from tests.stateful.soak import Notes, Seed, soak


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes.json"


def test_every_seed_is_played_once_and_the_next_run_goes_on(notes, capfd):
    for first in (5, 10):
        assert soak(notes, seeds=20, processes=2)
        assert Notes.read(notes) == Notes(first)
    assert capfd.readouterr().out.count("20 seeds in ") == 2


def test_a_seed_that_fails_is_kept_and_played_first_until_it_passes(notes, monkeypatch, capfd):
    # Given a simulation in which one seed fails
    def fail(width: int, number: int) -> None:
        if (width, number) == (3, 1):
            raise Broken("it does")

    monkeypatch.setattr(soaking, "simulate", fail)
    # When it is played, Then it is kept, with the command that replays it
    assert not soak(notes, seeds=8, processes=1)
    assert Notes.read(notes).failing == [Seed(3, 1)]
    assert "Broken: it does\n  replay it: python -m tests.stateful.simulation 3 1" in capfd.readouterr().out
    # And the next run plays it first, even if it plays nothing else, and wherever new ones begin
    assert not soak(notes, seeds=1, processes=1)
    assert Notes.read(notes) == Notes(2, [Seed(3, 1)])
    assert not soak(notes, seeds=5, processes=1, first=17)
    assert Notes.read(notes) == Notes(18, [Seed(3, 1)])
    # And once it passes, it is forgotten
    monkeypatch.setattr(soaking, "simulate", lambda _width, _number: None)
    assert soak(notes, seeds=1, processes=1)
    assert Notes.read(notes) == Notes(18)
