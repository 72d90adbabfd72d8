"""How fast ids are parsed, on few rounds."""

from __future__ import annotations

from bench import parsing


def test_parsing_alone_is_faster_than_acknowledging(monkeypatch):
    monkeypatch.setattr(parsing, "PARSE_ROUNDS", 3)
    parsed, acknowledged = parsing.parsing()
    assert parsed.measured > acknowledged.measured > 0
    assert (parsed.at_least, acknowledged.bounded) == (1_000_000, False)


def test_the_median_is_of_cpu_time(monkeypatch):
    times = iter([0, 5, 10, 11, 20, 22])  # 5, 1 and 2 seconds
    monkeypatch.setattr(parsing, "PARSE_ROUNDS", 3)
    monkeypatch.setattr(parsing.time, "process_time", lambda: next(times))
    assert parsing._median(lambda: None) == 2
