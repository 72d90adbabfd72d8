"""fanin restore: what it refuses. tests/e2e/test_restore.py restores."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("",), "the tables would be copied to themselves"),
        ((".restored", "--replace"), "--replace needs --batch"),
        ((".restored", "--batch", "x"), "--batch"),
    ],
)
def test_what_would_do_harm_is_wrong_usage(run, args, says):
    refused = run("restore", *args)
    assert refused.exit_code == 2
    assert says in " ".join(refused.stderr.split())


def test_the_tables_of_the_service_must_be_known(run, monkeypatch):
    monkeypatch.delenv("FANIN_BATCHES_TABLE", raising=False)
    assert "FANIN_BATCHES_TABLE is not set" in run("restore", ".restored").stderr
