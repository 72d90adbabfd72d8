"""Keeps the directory up to date: at a fixed rate, and on events of instances that come and go."""

from dataclasses import asdict
from typing import Any

from fanin import names
from fanin.app.directory.registrar import Registrar
from fanin.entry import bus, wiring
from fanin.entry.observe import count, logger, observed


@observed
def handler(event: dict[str, Any], context: Any) -> None:
    if event.get("detail-type") in names.INSTANCE_EVENTS:
        bus.follow_instance(event, wiring.services().directory, wiring.park)
        return
    swept = Registrar(wiring.ports(), report=bus.report_unchecked).sweep()
    count(names.METRIC_DROPPED, swept.over + swept.gone)
    logger.info("swept", extra=asdict(swept))
    bus.require_checked(swept)
