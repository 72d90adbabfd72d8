"""The Lambda layers: fanin, and the third-party packages that it needs; bundled without Docker."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from fanin.local.emulator import installer
from fanin_cdk.assets import REQUIREMENTS, CopyPackage, check_versions
from fanin_cdk.settings import Settings

RUNTIME = lambda_.Runtime.PYTHON_3_14
"""What fanin's own functions run on."""
RUNTIMES = {
    runtime.name: runtime
    for runtime in (
        lambda_.Runtime.PYTHON_3_11,
        lambda_.Runtime.PYTHON_3_12,
        lambda_.Runtime.PYTHON_3_13,
        lambda_.Runtime.PYTHON_3_14,
    )
}
"""What functions of users may run on, to get the layers."""
ON_AMAZON_LINUX_2 = lambda_.Runtime.PYTHON_3_11.name
"""The one of them that has an older glibc, 2.26."""
ARCHITECTURES = {one.name: one for one in (lambda_.Architecture.ARM_64, lambda_.Architecture.X86_64)}
"""Processor → its value in the CDK."""
PLATFORMS = {
    "arm64": ("manylinux_2_28_aarch64", "manylinux2014_aarch64"),
    "x86_64": ("manylinux_2_28_x86_64", "manylinux2014_x86_64"),
}
"""Processor → platform tags of wheels that run on Amazon Linux 2023, as Lambda and EMR Serverless do."""
NOT_IN_FUNCTIONS = ("cli", "spark", "local")
"""Rooms of the package that functions do not need."""


def architecture(settings: Settings) -> lambda_.Architecture:
    """The processor of the functions, as a value of the CDK."""
    return ARCHITECTURES[settings.architecture]


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
        self._settings = settings
        self.package = package_layer(self, "Package")
        processor = settings.architecture
        self.runtime = third_party_layer(self, "Runtime", "runtime", settings=settings, processor=processor)
        self.both = [self.package, self.runtime]
        self.console = (
            third_party_layer(self, "Console", "console", settings=settings, processor=processor)
            if settings.console
            else None
        )

    def fitting(
        self, scope: Construct, *, runtime: lambda_.Runtime = RUNTIME, processor: str | None = None
    ) -> list[lambda_.LayerVersion]:
        """The two layers for functions in the stack of a construct; it gets its own if these do not fit.

        A stack never takes the layers of another one: each change makes a new version of a layer, and
        CloudFormation refuses to change a value that another stack imports.

        Args:
            scope: a construct in the stack.
            runtime: the Python of the functions, one of ``RUNTIMES``.
            processor: ``arm64`` or ``x86_64``; None takes that of the settings.
        """
        stack = cdk.Stack.of(scope)
        processor = processor or self._settings.architecture
        at_home = stack.node.path == cdk.Stack.of(self).node.path
        if at_home and (runtime.name, processor) == (RUNTIME.name, self._settings.architecture):
            return self.both
        found = stack.node.try_find_child("FaninLayers")
        shelf = found if isinstance(found, Construct) else Construct(stack, "FaninLayers")
        fit = f"{runtime.name}-{processor}"
        package = self.package if at_home else shelf.node.try_find_child("Package")
        third_party = shelf.node.try_find_child(fit)
        if not isinstance(package, lambda_.LayerVersion):
            package = package_layer(shelf, "Package")
        if not isinstance(third_party, lambda_.LayerVersion):
            third_party = third_party_layer(
                shelf, fit, "runtime", settings=self._settings, processor=processor, runtime=runtime
            )
        return [package, third_party]


def package_layer(scope: Construct, id: str) -> lambda_.LayerVersion:
    """Create a layer of fanin; it has no compiled code, and fits every Python and processor.

    Raises:
        VersionMismatch: the installed fanin is not of the release of these constructs.
    """
    check_versions()
    package = CopyPackage("python", NOT_IN_FUNCTIONS)
    return lambda_.LayerVersion(
        scope,
        id,
        description="fanin",
        code=lambda_.Code.from_asset(
            package.source,
            exclude=package.excluded,
            ignore_mode=cdk.IgnoreMode.GIT,
            bundling=cdk.BundlingOptions(image=RUNTIME.bundling_image, local=package),
        ),
        compatible_runtimes=list(RUNTIMES.values()),
    )


def third_party_layer(
    scope: Construct,
    id: str,
    name: str,
    *,
    settings: Settings,
    processor: str,
    runtime: lambda_.Runtime = RUNTIME,
) -> lambda_.LayerVersion:
    """Create a layer of the packages that a folder of ``layers/`` names; some of them may be compiled.

    Args:
        scope: parent construct.
        id: its id there.
        name: name of the folder.
        settings: settings of the deployment; ``local`` takes the wheels of this machine.
        processor: ``arm64`` or ``x86_64``.
        runtime: the Python of the functions.
    """
    folder = REQUIREMENTS / name
    target = [] if settings.local else _lambda_wheels(processor, runtime)
    bundling = PipInstall(folder / "requirements.txt", target)
    return lambda_.LayerVersion(
        scope,
        id,
        description=f"third-party packages of fanin, {name}",
        code=lambda_.Code.from_asset(
            str(folder),
            # The pins and the target determine what is installed, so synthesizing again does not install
            # again.
            asset_hash_type=cdk.AssetHashType.CUSTOM,
            asset_hash=bundling.digest(),
            bundling=cdk.BundlingOptions(image=RUNTIME.bundling_image, local=bundling),
        ),
        compatible_runtimes=[runtime],
        compatible_architectures=[ARCHITECTURES[processor]],
    )


def _lambda_wheels(processor: str, runtime: lambda_.Runtime) -> list[str]:
    options = foreign(processor, runtime.name.removeprefix("python"))
    if runtime.name == ON_AMAZON_LINUX_2:
        options.remove(f"--platform={PLATFORMS[processor][0]}")
    return options


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
    """Bundles the packages of a requirements file.

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
        # The file may refer to others beside it.
        beside = [one.read_text() for one in sorted(self._requirements.parent.glob("*.txt"))]
        seed = "\n".join([self._requirements.name, *beside, *self._target, *host])
        return hashlib.sha256(seed.encode()).hexdigest()

    def try_bundle(self, output_dir: str, *_options: Any, **_more: Any) -> bool:
        """Install into the ``python`` folder of the layer; the CDK calls this.

        Raises:
            subprocess.CalledProcessError: the installer failed; it has printed the reason to standard error.
        """
        # Only pip has the options for another machine.
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command = [*pip, *self._target] if self._target else installer()
        # A file of an index whose content is not the one that was pinned is refused.
        pinned = ["--require-hashes", "--requirement", str(self._requirements)]
        subprocess.run([*command, *pinned, "--target", f"{output_dir}/python"], check=True)  # noqa: S603
        return True
