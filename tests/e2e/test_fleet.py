"""The fleet example on the deployed stack, in the roles that it brings: three reports at once."""

import re
from collections.abc import Iterator

import pytest

from examples.fleet import demo
from examples.fleet.log import Week, week_log
from examples.fleet.roster import ALPINE, HARBOUR
from fanin.local import CHECKOUT, CONTEXT, Stack, deploy, synthesize

pytestmark = pytest.mark.soak

WEEK = Week(2026, 46)
BEFORE = Week(2026, 45)


@pytest.fixture
def outputs(stack: Stack, local_environment: None) -> Iterator[dict[str, str]]:
    """The example's stack, deployed beside fanin during the test."""
    assembly = CHECKOUT / ".fanin" / "cdk.out" / "fleet"
    synthesize(demo.APP.file, assembly, inputs=demo.APP.inputs, context=CONTEXT)
    yield deploy(assembly, stack.endpoint_url)
    stack.client("cloudformation").delete_stack(StackName="fanin-fleet")


def test_reports_at_once_do_not_mix_and_say_who_is_missing(stack, outputs, tmp_path):
    # When two fleets are asked for a week, and one of them for the week before at the same time
    outcomes, together = demo.run(stack, outputs, WEEK, tmp_path, print)
    # Then every promise of the demo held
    assert [
        what
        for checks in (*(one.checks() for one in outcomes), together)
        for what, holds in checks.items()
        if not holds
    ] == []
    # And each report has its fleet and week, and lists the vehicles that must be missing
    reports = [one.report for one in outcomes]
    assert [(report.fleet, report.week) for report in reports] == [
        (HARBOUR, WEEK),
        (ALPINE, WEEK),
        (HARBOUR, BEFORE),
    ]
    harbour = {"HC-104": 3, "HC-107": 3, "HC-109": 0, "HC-112": None}
    alpine = {"AHS-102": 3, "AHS-104": 0, "AHS-108": 3}
    for report, missing in zip(reports, (harbour, alpine, harbour), strict=True):
        assert {one.vehicle.plate: one.asked for one in report.missing} == missing
        assert {row.vehicle.plate for row in report.rows} == report.fleet.vehicles.keys() - missing
        logs = {row.vehicle.plate: week_log(row.vehicle, report.week) for row in report.rows}
        assert {row.vehicle.plate: row.odometer_m for row in report.rows} == {
            plate: log.odometer_m for plate, log in logs.items()
        }
        assert report.total.distance_m == sum(trip.distance_m for log in logs.values() for trip in log.trips)
    # And repeated and late replies are told apart
    assert [(one.aftermath.repeated, one.aftermath.different, one.aftermath.late) for one in outcomes] == [
        (2, 1, 1),
        (0, 0, 1),
        (2, 1, 1),
    ]
    # And each has its page, under ids of its own
    ids = {report.correlation_id for report in reports}
    for outcome in outcomes:
        shown = outcome.file.read_text()
        assert [one for one in ids if one in shown] == [outcome.report.correlation_id]
        assert set(re.findall(r"(?:HC|AHS)-\d+", shown)) == outcome.report.fleet.vehicles.keys()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "alpine-2026-W46.html",
        "harbour-2026-W45.html",
        "harbour-2026-W46.html",
    ]
