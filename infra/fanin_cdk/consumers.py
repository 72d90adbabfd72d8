"""Gives functions of users what ``import fanin`` and ``Tracker.from_env()`` need."""

from collections.abc import Mapping
from typing import Protocol

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct, IConstruct

from fanin import names
from fanin_cdk.api import Api
from fanin_cdk.functions import Function
from fanin_cdk.layers import ARCHITECTURES, RUNTIMES, Layers
from fanin_cdk.settings import Settings

ID = "Fanin"


class UnfitFunction(ValueError):
    """A function cannot be what it should become; the message says why, and what to change."""


class Tracking(IConstruct, Protocol):
    """What a function needs of its tracker; ``FaninTracker`` has it."""

    settings: Settings
    layers: Layers

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def api(self) -> Api: ...

    @property
    def dead_letters(self) -> Function: ...

    def grant_consumer(self, grantee: iam.IGrantable) -> None: ...


class _Equipped(Construct):
    """Lies below a function that has been equipped, so that it happens once."""

    def __init__(self, scope: Construct, tracker: Tracking) -> None:
        super().__init__(scope, ID)
        self.tracker = tracker.node.path


def defined(function: lambda_.IFunction) -> lambda_.Function | lambda_.SingletonFunction | None:
    """The function of this app behind a function, an alias or a version; None if it was imported."""
    while isinstance(function, lambda_.Alias | lambda_.Version):
        function = function.lambda_
    return function if isinstance(function, lambda_.Function | lambda_.SingletonFunction) else None


def equip(function: lambda_.IFunction, tracker: Tracking) -> iam.IRole:
    """Give a function the layers that fit it, and the variables of a tracker.

    A function that does not run Python gets the URL of the API as well, by which it acknowledges.

    Returns:
        The role of the function.

    Raises:
        UnfitFunction: the layers do not fit the function, it belongs to another tracker, or it was imported
            without its role.
    """
    if function.role is None:
        raise UnfitFunction(
            f"{function.node.path} has no role, so nothing can be granted to it; import the function with "
            "its role, by Function.from_function_attributes"
        )
    own = defined(function)
    if own is None:
        return function.role
    before = own.node.try_find_child(ID)
    if isinstance(before, _Equipped):
        if before.tracker != tracker.node.path:
            raise UnfitFunction(
                f"{own.node.path} uses the tracker {before.tracker}, and cannot use {tracker.node.path} as "
                "well: Tracker.from_env() knows one; create a function for each tracker"
            )
        return function.role
    layers = _layers(own, tracker)
    present = _present(own)
    own.add_layers(*(layer for layer in layers if _arn(own, layer) not in present))
    for name, value in tracker.environment.items():
        own.add_environment(name, value)
    if own.runtime.family not in (None, lambda_.RuntimeFamily.PYTHON):  # there is no library, only the API
        own.add_environment(names.ENV_API_URL, tracker.api.url)
    _Equipped(own, tracker)
    return function.role


def _layers(
    function: lambda_.Function | lambda_.SingletonFunction, tracker: Tracking
) -> list[lambda_.LayerVersion]:
    runtime, processor = function.runtime, function.architecture.name
    if runtime.family != lambda_.RuntimeFamily.PYTHON:  # a container image has no family at all
        return []
    if runtime.name not in RUNTIMES:
        raise UnfitFunction(
            f"{function.node.path} runs on {runtime.name}, and fanin's layers are for {', '.join(RUNTIMES)}; "
            "choose one of these as its runtime, or make it a container image with fanin installed"
        )
    if processor not in ARCHITECTURES:
        raise UnfitFunction(
            f"{function.node.path} runs on {processor}, and fanin's layers are for "
            f"{', '.join(ARCHITECTURES)}; choose one of these as its architecture"
        )
    return tracker.layers.fitting(function, runtime=RUNTIMES[runtime.name], processor=processor)


def _present(function: lambda_.Function | lambda_.SingletonFunction) -> list[object]:
    """The ARNs of the layers that a function has."""
    resource = function.node.default_child
    layers = resource.layers if isinstance(resource, lambda_.CfnFunction) else None
    return Stack.of(function).resolve(layers) or []


def _arn(function: Construct, layer: lambda_.ILayerVersion) -> object:
    return Stack.of(function).resolve(layer.layer_version_arn)
