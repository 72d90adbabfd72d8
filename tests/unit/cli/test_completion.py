"""Completion: a script for each shell, also where no shell runs the command."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
import shellingham

from fanin.cli.exits import ExitCode

MARKS = {
    "bash": "complete -o default -F _fanin_completion fanin",
    "zsh": "#compdef fanin",
    "fish": "complete --command fanin",
}


@pytest.fixture
def no_shell(monkeypatch):
    """A container in which no process above this one is a shell."""

    def fail() -> None:
        raise shellingham.ShellDetectionFailure

    monkeypatch.setattr(shellingham, "detect_shell", fail)


@pytest.mark.usefixtures("no_shell")
@pytest.mark.parametrize("shell", MARKS)
def test_each_shell_gets_its_script_where_none_can_be_detected(run, shell):
    result = run("completion", shell)
    assert (result.exit_code, result.stderr) == (0, "")
    assert MARKS[shell] in result.stdout
    assert run("completion", shell, "--json").document == {"shell": shell, "script": result.stdout[:-1]}


@pytest.mark.parametrize("shell", MARKS)
def test_the_shell_that_runs_the_command_gets_its_script(run, monkeypatch, shell):
    monkeypatch.setattr(shellingham, "detect_shell", lambda: (shell, f"/bin/{shell}"))
    result = run("--show-completion")
    assert result.exit_code == 0
    assert MARKS[shell].split()[0] in result.stdout


@pytest.mark.usefixtures("no_shell")
@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_without_a_shell_the_options_say_so_in_a_line(run, option):
    result = run(option)
    assert result.exit_code == ExitCode.WRONG
    assert "not supported" in result.stdout + result.stderr
    assert (result.stdout + result.stderr).count("\n") == 1


def test_another_shell_is_refused_with_those_that_are_known(run):
    result = run("completion", "tcsh")
    assert result.exit_code == ExitCode.USAGE
    assert all(shell in result.stderr for shell in MARKS)


def completed(words: str) -> list[str]:
    """What bash offers for the last of these words."""
    program = f'#!{sys.executable}\nimport sys; sys.argv[0] = "fanin"; from fanin.cli import run; run()'
    script = f"""
set -e
folder=$(mktemp -d); trap 'rm -r "$folder"' EXIT
cat > "$folder/fanin" <<'END'
{program}
END
chmod +x "$folder/fanin"; PATH="$folder:$PATH"
eval "$(fanin completion bash)"
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_fanin_completion fanin
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(  # noqa: S603
        [shutil.which("bash") or "bash", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"), [("fanin local s", ["status"]), ("fanin list --pro", ["--progress"])]
)
def test_bash_completes_commands_and_options(words, offered):
    assert completed(words) == offered
