"""Prints what a deployment has cost so far, at list prices."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.table import Table

from fanin.domain.prices import BY_REGION, MILLION
from tests.smoke.account import Deployed
from tests.smoke.usage import usage

LAG: Final = 180
"""Seconds until CloudWatch has counted what has happened."""
NOT_BY_THE_MILLION: Final = ("log_gb",)


def bill(deployed: Deployed, stacks: list[str], since: datetime, console: Console) -> bool:
    """Print usage and dollars; EMR Serverless, EventBridge and storage for an hour are not in it.

    Args:
        deployed: the deployment.
        stacks: names of all its stacks.
        since: when they were created.
        console: where to print.

    Returns:
        Whether CloudWatch has counted anything; an emulator counts nothing.
    """
    account = deployed.account
    if not account.emulator:
        console.print(f"[dim]· CloudWatch needs {LAG} s to count")
        time.sleep(LAG)
    used = usage(account, stacks, since)
    cost = BY_REGION.get(account.region, BY_REGION["us-east-1"])
    table = Table.grid(padding=(0, 2))
    total = 0.0
    for name, units in used.items():
        dollars = units * getattr(cost, name) / (1 if name in NOT_BY_THE_MILLION else MILLION)
        total += dollars
        table.add_row(f"{units:,.3f}".rstrip("0").rstrip("."), name, f"${dollars:.4f}")
    console.print(table)
    console.print(f"${total:.4f} at the prices of {cost.region} ({cost.source}); without EMR Serverless")
    return bool(account.emulator) or sum(used.values()) > 0
