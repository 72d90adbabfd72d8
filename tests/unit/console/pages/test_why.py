from __future__ import annotations

import pytest

from fanin import Failure
from fanin.console.rendering import code_marks
from tests.unit.console.looking import HOSTILE, text_of


def test_all_findings_are_shown_with_severity_advice_and_evidence(service, browse) -> None:
    # Given an open batch of which items were never sent
    batch = service.tracker.open(on_failure="hold")
    group = list(service.tracker.add(batch.batch_id, 10))
    service.tracker.fail([Failure(group[0], HOSTILE)])
    expected = service.tracker.why(batch.batch_id)
    page = browse().get(f"/batches/{batch.batch_id}/why").text
    shown = text_of(page)
    for finding in expected.findings:
        assert f"{finding.severity} {finding.title}" in shown
        assert f'class="severity {finding.severity}"' in page
        for name, value in finding.evidence.items():
            assert name.replace("_", " ") in shown
            if isinstance(value, int):
                assert f"{value:,}" in shown
        assert f"code {finding.code}" in shown
    # And what is known of the missing items
    assert "held failed, and held" in shown
    assert "<script>alert" not in page


def test_a_severity_is_a_word_and_a_shape(service, browse) -> None:
    batch = service.tracker.open()
    page = browse().get(f"/batches/{batch.batch_id}/why").text
    assert '<span class="severity-word">' in page
    assert '<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">' in page


def test_an_ended_batch_says_how_it_ended(service, browse) -> None:
    batch = service.tracker.open()
    service.tracker.cancel(batch.batch_id)
    shown = text_of(browse().get(f"/batches/{batch.batch_id}/why").text)
    assert "How it ended" in shown
    assert "The batch has ended: it is cancelled" in shown


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("run `fanin redrive` now", "run <code>fanin redrive</code> now"),
        ("`a`", "<code>a</code>"),
        ("`<b>` & <i>", "<code>&lt;b&gt;</code> &amp; &lt;i&gt;"),
        ("one ` alone <b>", "one ` alone &lt;b&gt;"),
        ("", ""),
    ],
)
def test_what_stands_between_backticks_is_code(text, html) -> None:
    assert code_marks(text) == html
