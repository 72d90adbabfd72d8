"""Which actions are offered for what."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from urllib.parse import parse_qsl

import pytest

from fanin import PutRoute, Register
from fanin.console.actions.subjects import BATCH, BUFFER, REGISTRATION, ROUTE, SUBJECTS, offered
from fanin.domain.batch import Batch, Kind, Mode, OnFailure, State
from tests.unit.console.pressing import Person


def names(batch: Batch) -> list[str]:
    return [one.name for one in offered(BATCH, batch)]


def test_buttons_of_a_batch_follow_its_state(makes) -> None:
    batch, _ = makes.batch(3)
    assert names(batch) == ["close", "verify", "limits", "cancel"]
    assert names(replace(batch, state=State.CLOSED)) == ["verify", "limits", "cancel"]
    ended = replace(batch, state=State.COMPLETE, failed_more=False)
    assert names(ended) == ["verify", "remove"]
    assert names(replace(ended, failed=2)) == ["redrive", "verify", "remove"]
    assert names(replace(ended, targets=1)) == ["verify", "redeliver", "remove"]


def test_a_batch_that_holds_can_be_redriven_and_released_while_it_lives(makes) -> None:
    batch = replace(makes.batch(3)[0], on_failure=OnFailure.HOLD, held=2)
    assert names(batch) == ["close", "redrive", "release", "verify", "limits", "cancel"]
    assert names(replace(batch, state=State.TIMED_OUT)) == ["redrive", "verify", "remove"]


def test_patterns_have_fewer(makes) -> None:
    batch = makes.batch(3)[0]
    assert names(replace(batch, mode=Mode.ESTIMATED)) == ["close", "limits", "cancel"]
    assert names(replace(batch, kind=Kind.BUFFER)) == ["verify"]
    assert names(replace(batch, kind=Kind.SCATTER)) == ["verify", "cancel"]
    assert names(replace(batch, kind=Kind.FRAME, state=State.COMPLETE, failed=3)) == ["verify", "remove"]


def test_each_has_a_page_of_its_own() -> None:
    assert BATCH.segments({"batch_id": "7", "action": "close"}) == ("batches", "7")
    assert BUFFER.segments({"name": "stage"}) == ("buffers", "stage")
    assert ROUTE.segments({"name": "orders"}) == ("routes", "orders")
    assert REGISTRATION.segments({"topic": "shop", "name": "a"}) == ("directory", "shop", "a")
    assert len({one.kind for one in SUBJECTS}) == len(SUBJECTS)


class TestButtons:
    """The parts of pages that lead to questions."""

    def test_each_subject_has_a_row_of_them(self, service, person, makes) -> None:
        # Given
        services = service.services
        services.buffers.define("stage", 5)
        services.routing.put(PutRoute("orders", {"source": ["a"]}, "shop"))
        services.directory.register(Register("shop", "a", service.queue(channel=True)))
        batch, _ = makes.batch(3)
        given = {
            "batch": {"batch": batch},
            "buffer": {"level": services.buffers.status("stage")},
            "route": {"route": services.routing.get("orders")},
            "registration": {"registration": services.directory.get("shop", "a")},
        }
        reader = Person(service, write=False)
        for subject in SUBJECTS:
            # When
            html = person.console.templates.render(f"{subject.kind}_buttons.html", **given[subject.kind])
            # Then every link of it leads to a question
            links = re.findall(r'href="([^"]+)"', html)
            assert links
            assert {person.look(link).status_code for link in links} == {200}
            shown = reader.console.templates.render(f"{subject.kind}_buttons.html", **given[subject.kind])
            assert "href" not in shown

    @pytest.mark.parametrize("error", ["</a><script>alert(1)</script>\n&\"'", "x" * 1_024, "a b/c?d#e%20"])
    def test_a_group_of_failures_has_its_own(self, person, makes, error) -> None:
        # Given a batch that holds failed items
        batch = makes.failed(["x"], on_failure="hold")
        for macro, action in (("redrive_group", "redrive"), ("release_group", "release")):
            # When
            html = person.console.templates.macro("actions_parts.html", macro, batch, error)
            # Then
            assert "<script>" not in html
            (link,) = re.findall(r'href="([^"]+)"', html)
            path, _, query = unescape(link).partition("?")
            assert path == f"/batches/{batch.batch_id}/actions/{action}"
            assert parse_qsl(query) == [("error", error)]

    def test_failures_without_a_reason_and_batches_that_do_not_hold_have_none(self, person, makes) -> None:
        """No error would be an address that means all failures."""
        batch = makes.failed(["x"], on_failure="hold")
        live, _ = makes.batch(3)
        for macro in ("redrive_group", "release_group"):
            assert not person.console.templates.macro("actions_parts.html", macro, batch, "").strip()
            assert not person.console.templates.macro("actions_parts.html", macro, live, "x").strip()

    def test_an_item_has_one(self, person, makes) -> None:
        batch = makes.failed(["x"] * 3)
        html = person.console.templates.macro("actions_parts.html", "redrive_item", batch, 2)
        (link,) = re.findall(r'href="([^"]+)"', html)
        assert "Send 1 message again" in person.look(unescape(link)).text
