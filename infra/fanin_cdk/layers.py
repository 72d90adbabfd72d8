"""The Lambda layers: fanin, and the third-party packages that it needs; bundled without Docker."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from fanin_cdk.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = lambda_.Runtime.PYTHON_3_14
PYTHON_VERSION = RUNTIME.name.removeprefix("python")
PLATFORMS = {
    "arm64": ("manylinux_2_28_aarch64", "manylinux2014_aarch64"),
    "x86_64": ("manylinux_2_28_x86_64", "manylinux2014_x86_64"),
}
"""Processor → platform tags of wheels that run on Amazon Linux 2023, as Lambda and EMR Serverless do."""
NOT_IN_FUNCTIONS = (
    "/python/fanin/cli/",
    "/python/fanin/spark/",
    "/python/fanin/local/",
    "__pycache__/",
    "*.egg-info/",
)


def architecture(settings: Settings) -> lambda_.Architecture:
    """The processor of the functions, as a value of the CDK."""
    return lambda_.Architecture.ARM_64 if settings.architecture == "arm64" else lambda_.Architecture.X86_64


class Layers(Construct):
    """The two layers of every function.

    Args:
        scope: parent construct.
        id: its id there.
        settings: settings of the deployment; ``architecture`` and ``local`` choose the wheels.

    Attributes:
        package: fanin without its command line, its local stack and its Spark jobs.
        runtime: pinned versions of boto3, Powertools and fastjsonschema.
        both: the two layers, in the order in which functions take them.
        console: pinned versions of what the console needs besides; None if it is not deployed.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        self.package = lambda_.LayerVersion(
            self,
            "Package",
            description="fanin",
            code=lambda_.Code.from_asset(
                str(ROOT / "layers" / "fanin"),
                exclude=list(NOT_IN_FUNCTIONS),
                ignore_mode=cdk.IgnoreMode.GIT,
            ),
            compatible_runtimes=[RUNTIME],
        )
        self.runtime = self._third_party("runtime", "third-party packages of fanin", settings)
        self.both = [self.package, self.runtime]
        self.console = (
            self._third_party("console", "third-party packages of fanin's console", settings)
            if settings.console
            else None
        )

    def _third_party(self, name: str, description: str, settings: Settings) -> lambda_.LayerVersion:
        """A layer of the packages that a folder of ``layers/`` names."""
        return lambda_.LayerVersion(
            self,
            name.title(),
            description=description,
            code=_requirements(ROOT / "layers" / name, settings),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[architecture(settings)],
        )


def _requirements(folder: Path, settings: Settings) -> lambda_.AssetCode:
    target = [] if settings.local else foreign(settings.architecture, PYTHON_VERSION)
    bundling = PipInstall(folder / "requirements.txt", target)
    return lambda_.Code.from_asset(
        str(folder),
        # The pins and the target determine what is installed, so synthesizing again does not install again.
        asset_hash_type=cdk.AssetHashType.CUSTOM,
        asset_hash=bundling.digest(),
        bundling=cdk.BundlingOptions(image=RUNTIME.bundling_image, local=bundling),
    )


def foreign(processor: str, python: str) -> list[str]:
    """Options of pip that install for another machine than this one.

    Args:
        processor: ``arm64`` or ``x86_64``.
        python: version of Python there, such as ``3.14``.
    """
    return [
        *(f"--platform={platform}" for platform in PLATFORMS[processor]),
        *("--only-binary=:all:", "--implementation", "cp", "--python-version", python),
        # The Python there cannot use the bytecode of the Python here.
        "--no-compile",
    ]


@jsii.implements(cdk.ILocalBundling)
class PipInstall:
    """Bundles a requirements file with pip.

    Args:
        requirements: the file.
        target: options of pip for another machine, from ``foreign``; empty installs for this machine.
    """

    def __init__(self, requirements: Path, target: list[str]) -> None:
        self._requirements = requirements
        self._target = target

    def digest(self) -> str:
        """A hash that names what ``try_bundle`` would install."""
        host = [] if self._target else [sys.implementation.cache_tag, sys.platform]
        seed = "\n".join([self._requirements.read_text(), *self._target, *host])
        return hashlib.sha256(seed.encode()).hexdigest()

    def try_bundle(self, output_dir: str, *_options: Any, **_more: Any) -> bool:
        """Install into the ``python`` folder of the layer; the CDK calls this.

        Raises:
            subprocess.CalledProcessError: pip failed; it has printed the reason to standard error.
        """
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # A file of an index whose content is not the one that was pinned is refused.
        command += [
            "--require-hashes",
            "--requirement",
            str(self._requirements),
            "--target",
            f"{output_dir}/python",
        ]
        subprocess.run([*command, *self._target], check=True)  # noqa: S603
        return True
