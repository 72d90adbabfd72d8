"""How long functions take to import, with few and quick imports."""

from __future__ import annotations

import pytest

from bench import imports


def test_code_runs_with_the_import_path_of_lambda(tmp_path, monkeypatch):
    # Given a function's folder, and a variable that would change the import path
    (tmp_path / "handler.py").write_text("import fanin.names\n")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    # When it is imported, Then that works, and takes time
    assert imports._seconds("import handler", tmp_path, str(tmp_path / "cache")) > 0
    assert (tmp_path / "cache").exists()


def test_an_import_that_fails_fails_the_measurement(tmp_path):
    with pytest.raises(imports.subprocess.CalledProcessError):
        imports._seconds("import no_such_module", tmp_path, str(tmp_path))


def test_the_slowest_function_counts_relative_to_the_baseline(monkeypatch):
    # Given a baseline of one second, functions of half a second, and two with boto3; one is slower
    def seconds(code, folder, cache):
        if code == imports.BASELINE:
            return 1.0
        slow = 0.5 if folder.name == "api" else 0.0
        return (2.0 if code == imports.BOTO3_TOO else 0.5) + slow

    monkeypatch.setattr(imports, "_seconds", seconds)
    # When all are measured
    alone, whole = imports.imports()
    # Then the slowest one is the figure, and the note has all of them
    assert (alone.measured, whole.measured) == (1.0, 2.5)
    assert alone.at_most == 1.25
    assert "api 1.00" in alone.note
    assert "timer 0.50" in alone.note
