"""Steps are numbered, timed and never silent, and the packages come by the fastest installer."""

import io
import re
import sys

import pytest

from fanin.local import steps
from fanin.local.emulator import installer
from fanin.local.steps import Steps


class Beats(io.StringIO):
    """An output that says when a step has shown that it goes on."""

    def wait_for_dots(self, count: int) -> None:
        while self.getvalue().count(".") < count:
            pass


def interrupted(out: Beats) -> None:
    with Steps(out) as step:
        step("starting the emulator")
        out.wait_for_dots(2)
        step.line("fanning out")
        step("stopping the emulator")
        raise KeyboardInterrupt


def test_each_step_has_a_number_dots_and_its_time(monkeypatch):
    # Given steps that beat quickly
    monkeypatch.setattr(steps, "BEAT_SECONDS", 0.001)
    out = Beats()
    # When a step takes longer than two beats, one shows by itself how far it is, and the last one breaks off
    with pytest.raises(KeyboardInterrupt):
        interrupted(out)
    # Then
    said = out.getvalue()
    assert re.fullmatch(
        r" 1  starting the emulator \.{2,} \d+\.\d s\n"
        r" 2  fanning out\n"
        r" 3  stopping the emulator \.* \d+\.\d s\n",
        said,
    ), said


@pytest.mark.parametrize("has_uv", [True, False])
def test_uv_installs_where_it_is_beside_python(has_uv, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    if has_uv:
        (tmp_path / "uv").touch()

    program, *words = installer("other/python")

    assert program == str(tmp_path / ("uv" if has_uv else "python"))
    assert words[words.index("--python") + 1] == "other/python"
    assert ("-m" in words) is not has_uv
