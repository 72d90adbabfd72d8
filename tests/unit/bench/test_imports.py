"""How long functions take to import, with few and quick imports."""

from __future__ import annotations

import pytest

from bench import imports


def test_code_runs_with_the_import_path_of_lambda(tmp_path, monkeypatch):
    # Given a function's folder, and a variable that would change the import path
    (tmp_path / "handler.py").write_text("import fanin.names\n")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    # When it is imported, Then that works, and takes time
    assert imports._run(imports._TIMED, "import handler", tmp_path, str(tmp_path / "cache")) > 0
    assert (tmp_path / "cache").exists()


def test_an_import_that_fails_fails_the_measurement(tmp_path):
    with pytest.raises(imports.subprocess.CalledProcessError):
        imports._run(imports._TIMED, "import no_such_module", tmp_path, str(tmp_path))


def test_compiled_code_is_counted_once_and_alike_in_every_run(tmp_path):
    # Given a function that imports a module twice, and one that imports a larger module besides
    small, large = tmp_path / "small", tmp_path / "large"
    for folder, more in ((small, ""), (large, "import tomllib\n")):
        folder.mkdir()
        (folder / "handler.py").write_text(f"import colorsys\nimport colorsys as again\n{more}")
    # When their code is counted, the first time before it is compiled
    counts = [
        imports._run(imports._SIZED, "import handler", folder, str(tmp_path / "cache"))
        for folder in (small, small, large)
    ]
    # Then two counts are the same, and the third has the other module's code
    compiled = {path.name.split(".")[0]: path.stat().st_size for path in (tmp_path / "cache").rglob("*.pyc")}
    assert counts[0] == counts[1]
    assert compiled["colorsys"] < counts[0] < compiled["colorsys"] + 1_000
    assert counts[2] > counts[0] + compiled["_parser"]


def test_the_largest_function_counts_relative_to_the_baseline(monkeypatch):
    monkeypatch.setattr(
        imports,
        "_run",
        lambda program, code, folder, cache: (
            4.0 if code == imports.BASELINE else 1.0 + (folder.name == "api")
        ),
    )
    (figure,) = imports.size()
    assert (figure.measured, figure.at_most) == (0.5, 0.8)
    assert "timer 0.25" in figure.note


def test_the_slowest_function_counts_relative_to_the_baseline(monkeypatch):
    # Given a baseline of one second, functions of half a second, and two with boto3; one is slower
    def seconds(program, code, folder, cache):
        if code == imports.BASELINE:
            return 1.0
        slow = 0.5 if folder.name == "api" else 0.0
        return (2.0 if code == imports.BOTO3_TOO else 0.5) + slow

    monkeypatch.setattr(imports, "_run", seconds)
    # When all are measured
    alone, whole = imports.seconds()
    # Then the slowest one is the figure, and the note has all of them
    assert (alone.measured, whole.measured) == (1.0, 2.5)
    assert alone.at_most == 1.25
    assert "api 1.00" in alone.note
    assert "timer 0.50" in alone.note
