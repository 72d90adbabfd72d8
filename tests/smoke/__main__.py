"""Deploys fanin to a real account, tries it there, says what it cost, and removes all of it.

    make smoke PROFILE=sandbox           says what would be done
    make smoke PROFILE=sandbox YES=yes   does it

The stacks get a random prefix, so they touch nothing else in the account. They are removed at the end, also
after a failure or Ctrl-C. With a profile that leads to the emulator, the same happens there.
"""

import argparse
import os
import signal
import sys
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.markup import escape

from tests.npm.packages import Unfetched
from tests.smoke import trials
from tests.smoke.account import Account, Deployed
from tests.smoke.bill import bill
from tests.smoke.remains import left, remove_made
from tests.smoke.toolkit import BOOTSTRAPPED, Toolkit, ToolkitFailed

APP: Final = Path(__file__).with_name("app.py")
LIMIT: Final = 20_000
"""Most writes a second of each table, until an update lifts it."""
EXPECTED: Final = (BotoCoreError, ClientError, LookupError, TimeoutError, ToolkitFailed, Unfetched)


class Smoke:
    """One deployment under a random prefix, from its creation to its removal."""

    def __init__(self, account: Account, options: argparse.Namespace, folder: Path, console: Console) -> None:
        self._account, self._options, self._folder, self._console = account, options, folder, console
        self.prefix = f"smoke-{uuid.uuid4().hex[:8]}"
        self.pipeline = not (options.no_pipeline or account.emulator)
        self._toolkit = Toolkit(account, APP, folder)
        self._deployed: Deployed | None = None
        self._since = datetime.now(UTC)

    @property
    def stacks(self) -> list[str]:
        """Names of the stacks."""
        return [
            self.prefix,
            f"{self.prefix}-catalog",
            *([f"{self.prefix}-pipeline"] if self.pipeline else []),
        ]

    @property
    def _context(self) -> dict[str, Any]:
        """Settings: everything goes with its stack, and nothing waits for a full window."""
        settings = {
            "prefix": self.prefix,
            "removal": "destroy",
            "ack_batching_window_seconds": 1,
            "log_retention_days": 1,
            "pipeline": self.pipeline,
        }
        return settings | ({"local": True} if self._account.emulator else {})

    def run(self) -> bool:
        """Deploy, try everything, and remove everything; returns whether all of it went well."""
        passed = False
        try:
            self._deploy()
            results = [self._passes(name, trial) for name, trial in self._trials().items()]
            passed = all(results)
        except KeyboardInterrupt:
            self._console.print("[yellow]interrupted; removing everything")
        except EXPECTED as error:
            self._console.print(f"[red]{escape(str(error))}")
        finally:
            removed = self._remove()
        return passed and removed

    def _deploy(self) -> None:
        if not self._toolkit.bootstrapped():
            raise LookupError(
                f"{self._account.region} has no parameter {BOOTSTRAPPED}; run once: npx aws-cdk bootstrap"
            )
        self._console.rule("deploy")
        outputs = self._toolkit.deploy(self._context | {"table_max_writes": LIMIT})
        self._deployed = Deployed(self._account, self.prefix, outputs)
        os.environ.update(self._deployed.environment())

    def _trials(self) -> dict[str, Callable[[Deployed], bool]]:
        options, folder = self._options, self._folder
        pipeline = {"audit by the pipeline": trials.pipeline} if self.pipeline else {}
        every: dict[str, Callable[[Deployed], bool]] = {
            "behaviour": lambda deployed: trials.behaviour(deployed, folder, options.behaviour),
            "paths": trials.paths,
            "demo": lambda deployed: trials.catalog(deployed, options.items, self._console),
            "dead letters": trials.dead_letters,
            "audit by a scan": lambda deployed: trials.scan(deployed, folder),
            **pipeline,
            "an update": self._updates,
            "cost": lambda deployed: bill(deployed, self.stacks, self._since, self._console),
        }
        return {name: trial for name, trial in every.items() if options.only in (None, name)}

    def _updates(self, deployed: Deployed) -> bool:
        """The stacks are deployed again, without the limit; an emulator reads no limits from templates."""
        limited = trials.limits(deployed) == {LIMIT}
        self._toolkit.deploy(self._context)
        lifted = trials.limits(deployed) == {trials.UNLIMITED}
        return bool(self._account.emulator) or (limited and lifted)

    def _passes(self, name: str, trial: Callable[[Deployed], bool]) -> bool:
        assert self._deployed
        self._console.rule(name)
        try:
            passed = trial(self._deployed)
        except EXPECTED as error:
            self._console.print(f"[red]{escape(str(error))}")
            passed = False
        self._console.print(f"[green]✓[/] {name}" if passed else f"[red]✗[/] {name}")
        return passed

    def _remove(self) -> bool:
        """Delete everything, and look for what is left; a second Ctrl-C does not stop it."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._console.rule("remove")
        try:
            if self._deployed:
                remove_made(self._deployed)
            self._toolkit.destroy()
            remains = left(self._account, self.prefix)
        except EXPECTED as error:
            self._console.print(
                f"[red]{escape(str(error))}\nremove the stacks by hand: {', '.join(self.stacks)}"
            )
            return False
        for one in remains:
            self._console.print(f"[red]✗[/] still there: {escape(one)}")
        if not remains:
            self._console.print("[green]✓[/] nothing is left")
        return not remains


def main() -> int:
    """Try fanin in an account.

    Returns:
        0 if all trials passed and nothing is left, 1 if not, 2 if nothing was done.
    """
    options = _options()
    console = Console()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    account = Account(options.profile)
    with TemporaryDirectory(prefix="fanin-smoke-") as folder:
        try:
            region = account.region  # before any client, whose errors would not say that it is missing
            smoke = Smoke(account, options, Path(folder), console)
            identity = account.identity
        except EXPECTED as error:
            console.print(f"[red]{escape(str(error))}")
            return 2
        console.print(
            f"account {identity['Account']}, region {region}, as {identity['Arn']}\n"
            f"stacks {', '.join(smoke.stacks)}: created, tried, and deleted again"
        )
        if options.yes != "yes":
            console.print(
                "[yellow]nothing was done. It costs money: cents, with the pipeline about a dollar.\n"
                f"To do it: make smoke PROFILE={options.profile} YES=yes"
            )
            return 2
        os.environ.update(account.environment)
        return 0 if smoke.run() else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.smoke", description=__doc__.splitlines()[0])
    parser.add_argument("--profile", required=True, help="of the AWS configuration; it names the region")
    parser.add_argument("--yes", default="", help="yes: really do it")
    parser.add_argument("--items", type=int, default=2_000, help="of the demo")
    parser.add_argument(
        "--behaviour", default="", metavar="EXPRESSION", help="only these tests, as -k of pytest"
    )
    parser.add_argument("--only", metavar="TRIAL", help="only this one, such as: demo")
    parser.add_argument("--no-pipeline", action="store_true", help="without EMR Serverless")
    options = parser.parse_args()
    if not options.profile:
        parser.error("name a profile of your AWS configuration: make smoke PROFILE=sandbox")
    return options


if __name__ == "__main__":
    sys.exit(main())
