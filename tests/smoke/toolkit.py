"""The CDK's command line, as users deploy with it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fanin.local import CHECKOUT
from tests.npm.packages import Package, node
from tests.smoke.account import Account

CDK: Final = Package(
    "aws-cdk",
    "2.1148.1",
    "K3d02L17IwmAuiBWNuX1DzYhKUs9GrKYI7bZnGJfJ1bKz9ymXFxfudBOL3rUb8JAusDNSULiQU2fsJH7kyY2XA==",
)
BOOTSTRAPPED: Final = "/cdk-bootstrap/hnb659fds/version"


class ToolkitFailed(Exception):
    """A command of the CDK failed; the message has what it printed last."""


class Toolkit:
    """Deploys one app to one account.

    Args:
        account: where to.
        app: the script of the app.
        folder: for the assembly, and for whatever else the commands write.
    """

    def __init__(self, account: Account, app: Path, folder: Path) -> None:
        self._account, self._app, self._folder = account, app, folder
        self._assembly = folder / "cdk.out"

    def bootstrapped(self) -> bool:
        """Whether the account is prepared for the CDK; an emulator is prepared here."""
        if self._account.emulator:
            self._cdk("bootstrap", f"aws://{self._account.identity['Account']}/{self._account.region}")
        ssm = self._account.client("ssm")
        return bool(ssm.get_parameters(Names=[BOOTSTRAPPED])["Parameters"])

    def deploy(self, context: Mapping[str, object]) -> dict[str, str]:
        """Create or update all stacks, and return their outputs by name.

        Args:
            context: settings of the deployment.

        Raises:
            ToolkitFailed: the app failed, or a resource could not be created.
        """
        variables = {"CDK_OUTDIR": str(self._assembly), "CDK_CONTEXT_JSON": json.dumps(context)}
        self._run([sys.executable, self._app], variables)
        outputs = self._folder / "outputs.json"
        self._cdk("deploy", *self._stacks, "--require-approval", "never", "--outputs-file", str(outputs))
        stacks: dict[str, dict[str, str]] = json.loads(outputs.read_text())
        return {name: value for stack in stacks.values() for name, value in stack.items()}

    def destroy(self) -> None:
        """Delete all stacks; those that do not exist are left alone.

        Raises:
            ToolkitFailed: a resource could not be deleted.
        """
        self._cdk("destroy", *self._stacks, "--force")

    @property
    def _stacks(self) -> tuple[str, ...]:
        return ("--app", str(self._assembly), "--all")

    def _cdk(self, *command: str) -> None:
        program = CDK.unpacked(CHECKOUT / ".fanin" / "npm") / "bin" / "cdk"
        self._run([node(), program, *command, "--no-notices"], {"CDK_DISABLE_CLI_TELEMETRY": "true"})

    def _run(self, command: list[str | Path], variables: Mapping[str, str]) -> None:
        done = subprocess.run(
            command,
            # An app in the working directory would be synthesized again.
            cwd=self._folder,
            env={**os.environ, **self._account.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
            raise ToolkitFailed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{said}")
