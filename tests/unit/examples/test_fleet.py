"""The fleet's own rules: what a log holds, what a report is made of, what a page shows."""

import json
import re
from dataclasses import replace

import pytest

from examples.fleet.log import FillUp, Trip, Week, WeekLog, week_log
from examples.fleet.onboard import OnBoardUnit
from examples.fleet.page import page
from examples.fleet.report import Figures, Misdirected, Missing, Report
from examples.fleet.roster import ALPINE, HARBOUR, YARIS, Fleet, Vehicle
from fanin import ItemFailed, ReceivedMessage, Tracker
from fanin.domain.scatter import GatheredReply

WEEK = Week(2026, 46)
VEHICLES = [*HARBOUR.vehicles.values(), *ALPINE.vehicles.values()]
DETAIL = {
    "batch_id": 42,
    "correlation_id": "c-1",
    "ended_at": "2026-11-16T08:00:00.000Z",
    "recipients": 7,
    "retries": 2,
    "missing_recipients": ["AHS-102", "AHS-104"],
    "failed_recipients": ["AHS-106"],
    "failures": [{"ordinal": 4, "item": "i", "reason": "AHS-106: there is no such queue"}],
}


def reply(vehicle: Vehicle, week: Week = WEEK, /, **said: object) -> GatheredReply:
    payload = {
        "vehicle": vehicle.plate,
        "fleet": vehicle.fleet,
        "week": str(week),
        "asked": 1,
        "log": json.loads(json.dumps(week_log(vehicle, week).encode())),
    }
    return GatheredReply(0, vehicle.plate, 0, payload | said)


def alpine(*plates: str, **detail: object) -> Report:
    replies = [reply(ALPINE.vehicles[plate]) for plate in plates]
    return Report.of(ALPINE, WEEK, DETAIL | detail, replies)


class TestLog:
    def test_it_is_always_the_same_and_no_two_are(self):
        logs = {vehicle.plate: week_log.__wrapped__(vehicle, WEEK) for vehicle in VEHICLES}
        assert logs == {vehicle.plate: week_log(vehicle, WEEK) for vehicle in VEHICLES}
        assert len({log.trips for log in logs.values()}) == len(VEHICLES)

    def test_it_crosses_the_wire(self):
        log = week_log(VEHICLES[2], WEEK)
        assert WeekLog.decode(json.loads(json.dumps(log.encode()))) == log


class TestReport:
    def test_figures_are_sums(self):
        log = WeekLog(
            trips=(
                Trip("2026-11-09T08:00:00", "2026-11-09T08:30:00", 20_000, 1_000),
                Trip("2026-11-09T09:00:00", "2026-11-09T10:00:00", 60_000, 4_200),
            ),
            fill_ups=(FillUp("2026-11-09T08:50:00", 40_000, 1_699, 20_000),),
            odometer_m=80_000,
        )
        figures = Figures.of(log)
        assert figures == Figures(2, 80_000, 5_400, 5_200, 1, 40_000, 6_796)
        assert figures + figures == Figures(4, 160_000, 10_800, 10_400, 2, 80_000, 13_592)
        assert figures.litres_per_100_km == 6.5
        assert Figures().litres_per_100_km is None

    def test_it_has_a_row_for_each_reply_and_says_who_is_missing_and_why(self):
        report = alpine("AHS-103", "AHS-101", "AHS-107")

        assert [row.vehicle.plate for row in report.rows] == ["AHS-101", "AHS-103", "AHS-107"]
        logs = [week_log(row.vehicle, WEEK) for row in report.rows]
        assert [row.odometer_m for row in report.rows] == [log.odometer_m for log in logs]
        assert report.total.distance_m == sum(trip.distance_m for log in logs for trip in log.trips)
        gone = "not in the directory: its lease is over"
        assert report.missing == (
            Missing(ALPINE.vehicles["AHS-102"], "did not answer", 3),
            Missing(ALPINE.vehicles["AHS-104"], "did not answer", 3),
            Missing(ALPINE.vehicles["AHS-105"], gone, 0),
            Missing(ALPINE.vehicles["AHS-106"], "there is no such queue", None),
            Missing(ALPINE.vehicles["AHS-108"], gone, 0),
        )

    @pytest.mark.parametrize(
        "other",
        [
            reply(HARBOUR.vehicles["HC-101"]),
            reply(ALPINE.vehicles["AHS-101"], WEEK - 1),
            reply(ALPINE.vehicles["AHS-101"], vehicle="AHS-102"),
        ],
        ids=["fleet", "week", "vehicle"],
    )
    def test_a_reply_of_another_report_is_never_summed(self, other):
        with pytest.raises(Misdirected):
            Report.of(ALPINE, WEEK, DETAIL, [reply(ALPINE.vehicles["AHS-103"]), other])


class TestPage:
    def test_it_loads_nothing(self):
        assert not re.search(r"https?:|\bsrc=|<link|@import|url\(", page(alpine("AHS-101")))

    def test_it_escapes_whatever_it_is_given(self):
        evil = '<img src=x onerror="alert(1)">'
        vehicle = Vehicle(evil, "f", replace(YARIS, name=evil))
        other = Vehicle("other", "f", YARIS)
        fleet = Fleet("f", evil, {vehicle.plate: vehicle, "other": other})
        failed = {"failed_recipients": ["other"], "failures": [{"reason": f"other: {evil}"}]}
        detail = DETAIL | failed | {"correlation_id": evil, "missing_recipients": []}

        shown = page(Report.of(fleet, WEEK, detail, [reply(vehicle)]))

        assert "<img" not in shown
        assert shown.count("&lt;img src=x onerror=&#34;alert(1)&#34;&gt;") == 6


class TestOnBoard:
    @pytest.mark.parametrize(
        ("kind", "body", "said"),
        [
            ("Monthly Report", {"week": "2026-W46"}, "does not know the type 'Monthly Report'"),
            ("Weekly Report", {"week": "soon"}, "HC-101: "),
            ("Weekly Report", {"week": "2024-W01"}, "logs begin in 2025-W01"),
            ("Weekly Report", {}, "HC-101: 'week'"),
        ],
    )
    def test_what_it_can_never_answer_it_fails(self, kind, body, said):
        unit = OnBoardUnit(VEHICLES[0], Tracker.in_memory())
        message = ReceivedMessage("m", json.dumps(body), "i", {"fanin-type": kind}, None, 1, {})
        with pytest.raises(ItemFailed, match=said):
            unit.answer(message)
