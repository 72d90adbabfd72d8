"""Asks two fleets for their weekly reports, one of them for two weeks at once, and checks the results.

    make demo-fleet                   the week before this one
    make demo-fleet WEEK=2026-W46     another week

The vehicles are threads, each with a queue of its own; some are slow, some dead. The functions are the same
as on AWS, deployed from the same templates to an emulator of this demo. It verifies signatures, enforces
policies, and is stopped at the end, also after Ctrl-C.
"""

import argparse
import math
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import boto3
from rich.console import Console

from examples.deployed import deployed, example
from examples.fleet.log import FIRST, Week
from examples.fleet.mishaps import InTunnel, Mute
from examples.fleet.office import Office
from examples.fleet.page import Aftermath, page
from examples.fleet.report import Report
from examples.fleet.road import Road
from examples.fleet.roster import ALPINE, HARBOUR, WORKSHOP, Fleet
from examples.fleet.summary import Outcome, summary
from examples.fleet.wording import TOPIC
from fanin import Tracker
from fanin.local import CHECKOUT, Stack, Steps, environment

HERE = Path(__file__).parent
APP = example(HERE, "stack.py", "wording.py")
HOME = CHECKOUT / ".fanin" / "demo-fleet"
MAX_RETRIES = 2
LEAST = timedelta(seconds=5)  # the shortest timeout of a scatter
MOST = timedelta(seconds=15)
PATIENCE = 5  # the timeout, in multiples of the time that a report takes when no vehicle is slow
LONGEST = timedelta(seconds=90)
WAITING: Final = "ApproximateNumberOfMessages"


def run(
    stack: Stack, outputs: dict[str, str], week: Week, folder: Path, say: Callable[[str], None]
) -> tuple[list[Outcome], dict[str, bool]]:
    """Ask for the reports, wait for them, write them; then let late vehicles answer, and check again.

    The environment must have the variables from ``fanin.local.environment``.

    Args:
        stack: the stack of fanin.
        outputs: outputs of the example's stack.
        week: the week to ask for.
        folder: folder for the pages.
        say: called with a line of text on each step.

    Returns:
        The outcome of each report, and checks on all of them together: promise → whether it holds.

    Raises:
        TimeoutError: a report is not ready in time, or a vehicle does not do what it should.
        Misdirected: a reply is in the wrong report.
    """
    operator = Tracker.from_env()
    vehicles, clerk = (_as(stack, outputs[role]) for role in ("VehiclesRoleArn", "OfficeRoleArn"))
    office = Office(clerk, outputs["ReadyQueueUrl"], max_retries=MAX_RETRIES)
    with Road((HARBOUR, ALPINE, WORKSHOP), vehicles) as road:
        say(f"{len(road.units)} vehicles are connected; two leases expire, and one queue is deleted")
        timeout = _pace(office, week)
        road.age(lambda: {one.name for one in operator.directory.members(TOPIC)})
        wanted = [(HARBOUR, week), (ALPINE, week), (HARBOUR, week - 1)]
        asked = {office.ask(*one, timeout): one for one in wanted}
        say(
            f"requested {len(asked)} reports at once; vehicles that do not answer are asked"
            f" {MAX_RETRIES} more times, after {timeout.seconds} s each"
        )
        office.wait(asked, (1 + MAX_RETRIES) * timeout + LONGEST)
        reports = {batch_id: office.report(*one, batch_id) for batch_id, one in asked.items()}
        for report in reports.values():
            _write(folder, report, None)
        say("all reports are ready; now the late vehicles answer")
        road.end_of_tunnel(sum(_affected(fleet, road) for fleet, _ in wanted))
        office.listen(2)  # a second event, if there were one, would arrive by now
        outcomes = []
        for batch_id, one in asked.items():
            again = office.report(*one, batch_id)
            aftermath = _aftermath(road, batch_id)
            file = _write(folder, again, aftermath)
            outcomes.append(Outcome(reports[batch_id], again, aftermath, office.heard[batch_id], file))
        unheard = {unit.vehicle.plate: _waiting(operator, unit.channel) for unit in road.of(Mute)}
    due = {
        plate: (1 + MAX_RETRIES) * sum(plate in fleet.vehicles for fleet, _ in wanted) for plate in unheard
    }
    ids = {outcome.report.correlation_id for outcome in outcomes}
    together = {
        "each report has a correlation id of its own": len(ids) == len(outcomes),
        "the queues of dead vehicles still have all their messages": unheard == due,
    }
    return outcomes, together


def _pace(office: Office, week: Week) -> timedelta:
    """Measure how long vehicles need to answer on this machine, and derive the timeout.

    The first report is not measured, because it starts cold functions.
    """
    took = timedelta()
    for _ in range(2):
        started = time.monotonic()
        office.wait([office.ask(WORKSHOP, week, LONGEST)], LONGEST)
        took = timedelta(seconds=math.ceil(PATIENCE * (time.monotonic() - started)))
    return min(max(LEAST, took), MOST)


def _as(stack: Stack, role: str) -> Tracker:
    """A tracker that uses the credentials of a role."""
    keys = stack.client("sts").assume_role(RoleArn=role, RoleSessionName="demo")["Credentials"]
    session = boto3.Session(
        keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], region_name=stack.region
    )
    return Tracker.over_https(stack.api_url, session=session)


def _affected(fleet: Fleet, road: Road) -> int:
    return sum(unit.vehicle.fleet == fleet.key for unit in road.of(InTunnel))


def _waiting(operator: Tracker, queue_url: str) -> int:
    found = operator.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=[WAITING])
    return int(found["Attributes"][WAITING])


def _aftermath(road: Road, batch_id: int) -> Aftermath:
    receipts = road.receipts(batch_id)
    return Aftermath(
        repeated=sum(one.duplicate for one in receipts),
        different=sum(one.duplicate and one.different for one in receipts),
        late=sum(one.late for one in receipts),
    )


def _write(folder: Path, report: Report, aftermath: Aftermath | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{report.fleet.key}-{report.week}.html"
    file.write_text(page(report, aftermath), encoding="utf-8")
    return file


def _week(text: str) -> Week:
    week = Week.parse(text) if text else Week.of(datetime.now(UTC).date()) - 1
    if week <= FIRST:
        raise argparse.ArgumentTypeError(f"logs begin in {FIRST}; pass a later week")
    return week


def main(arguments: Sequence[str], step: Steps) -> bool:
    """Run the demo; whether every promise holds."""
    parser = argparse.ArgumentParser(
        description="Gather the weekly reports of two fleets on the local stack."
    )
    parser.add_argument("--week", type=_week, default="", help="week, such as 2026-W46; by default last week")
    parser.add_argument(
        "--root", type=Path, default=HOME, help="folder for the state and the log of the emulator"
    )
    options = parser.parse_args(arguments)
    with deployed(options.root, step, APP, auth=True) as stack:
        os.environ.update(environment(stack))
        outcomes, together = run(stack, stack.outputs, options.week, options.root / "reports", step)
        step.done()
        return summary(outcomes, together, Console())
