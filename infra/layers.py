"""The layers: fanin itself, and the third-party packages it runs on, bundled without Docker."""

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

from infra.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
RUNTIME = lambda_.Runtime.PYTHON_3_14
PYTHON_VERSION = RUNTIME.name.removeprefix("python")
PLATFORMS = {
    "arm64": ("manylinux_2_28_aarch64", "manylinux2014_aarch64"),
    "x86_64": ("manylinux_2_28_x86_64", "manylinux2014_x86_64"),
}
"""Wheels that run on Amazon Linux 2023, which functions and EMR have."""
NOT_IN_FUNCTIONS = (
    "/python/fanin/cli/",
    "/python/fanin/spark/",
    "/python/fanin/local/",
    "__pycache__/",
    "*.egg-info/",
)


def architecture(settings: Settings) -> lambda_.Architecture:
    """The processor of the functions, as the CDK names it."""
    return lambda_.Architecture.ARM_64 if settings.architecture == "arm64" else lambda_.Architecture.X86_64


class Layers(Construct):
    """The two layers that every function has.

    Attributes:
        package: fanin, less its command line and jobs.
        runtime: boto3, Powertools and the JSON Schema compiler, pinned.
        both: the two, in the order in which functions take them.
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
        self.runtime = lambda_.LayerVersion(
            self,
            "Runtime",
            description="third-party packages of fanin",
            code=_requirements(ROOT / "layers" / "runtime", settings),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[architecture(settings)],
        )
        self.both = [self.package, self.runtime]


def _requirements(folder: Path, settings: Settings) -> lambda_.AssetCode:
    target = [] if settings.local else foreign(settings.architecture, PYTHON_VERSION)
    bundling = PipInstall(folder / "requirements.txt", target)
    return lambda_.Code.from_asset(
        str(folder),
        # What is installed follows from the pins and the target alone: synthesizing again installs nothing.
        asset_hash_type=cdk.AssetHashType.CUSTOM,
        asset_hash=bundling.digest(),
        bundling=cdk.BundlingOptions(image=RUNTIME.bundling_image, local=bundling),
    )


def foreign(processor: str, python: str) -> list[str]:
    """Options of pip to install for another machine.

    Args:
        processor: ``arm64`` or ``x86_64``.
        python: such as ``3.14``.
    """
    return [
        *(f"--platform={platform}" for platform in PLATFORMS[processor]),
        *("--only-binary=:all:", "--implementation", "cp", "--python-version", python),
        # Bytecode of this machine's Python is of no use to another.
        "--no-compile",
    ]


@jsii.implements(cdk.ILocalBundling)
class PipInstall:
    """Bundles a requirements file with pip, for this machine or, given pip's target options, for another."""

    def __init__(self, requirements: Path, target: list[str]) -> None:
        self._requirements = requirements
        self._target = target

    def digest(self) -> str:
        """Name what ``try_bundle`` would install."""
        host = [] if self._target else [sys.implementation.cache_tag, sys.platform]
        seed = "\n".join([self._requirements.read_text(), *self._target, *host])
        return hashlib.sha256(seed.encode()).hexdigest()

    def try_bundle(self, output_dir: str, *_options: Any, **_more: Any) -> bool:
        """Install into the layer's ``python`` folder.

        Raises:
            subprocess.CalledProcessError: pip could not install; it has said why on standard error.
        """
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--requirement", str(self._requirements), "--target", f"{output_dir}/python"]
        subprocess.run([*command, *self._target], check=True)  # noqa: S603
        return True
