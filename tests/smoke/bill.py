"""Prints what a deployment has cost so far, at list prices."""

import time
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.table import Table

from fanin.domain.prices import prices_or_default
from tests.smoke.account import Deployed
from tests.smoke.usage import usage

LAG: Final = 180
"""Seconds until CloudWatch has counted what has happened."""


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
    used, prices = usage(account, stacks, since), prices_or_default(account.region)
    table = Table.grid(padding=(0, 2))
    for name, amount in used.amounts().items():
        table.add_row(name.replace("_", " "), f"{amount:,.3f}".rstrip("0").rstrip("."))
    for service, dollars in used.bill(prices).items():
        table.add_row(service, f"${dollars:.4f}")
    console.print(table)
    told = f"at the prices of {prices.region} ({prices.source}); without EMR Serverless"
    console.print(f"${used.dollars(prices):.4f} {told}")
    return bool(account.emulator) or bool(used.amounts())
