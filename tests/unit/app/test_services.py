"""One face, two implementations: over ports and over HTTPS, ``Fanin`` has the same calls.

A call that is added to a Protocol of ``fanin.app.api`` and forgotten on one side fails here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest

from fanin.adapters.memory import Memory
from fanin.app import api
from fanin.app.api import Fanin
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.domain.frames import OpenFrame

OVER = {
    "ports": lambda: Services(Memory().ports()),
    "https": lambda: HttpsServices(HttpsApi("https://api.example.com", sign=unsigned)),
}
FACES = {
    name: get_type_hints(face.fget)["return"]
    for name, face in vars(Fanin).items()
    if isinstance(face, property)
}


def calls(protocol: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, call in vars(protocol).items():
        if inspect.isfunction(call) and not name.startswith("_"):
            yield name, call


CALLS = [
    pytest.param(service, name, call, id=f"{service}.{name}")
    for service, protocol in FACES.items()
    for name, call in calls(protocol)
]


def parameters(call: Callable[..., Any]) -> list[tuple[str, Any, Any, Any]]:
    """Name, kind, default and type of every parameter, but for ``self``."""
    return [
        (one.name, one.kind, one.default, one.annotation)
        for one in inspect.signature(call).parameters.values()
        if one.name != "self"
    ]


def answer(call: Callable[..., Any]) -> str:
    """What a call returns; a list is a sequence."""
    return str(inspect.signature(call).return_annotation).replace("list[", "Sequence[")


def test_there_are_six_services() -> None:
    assert set(FACES) == {"ledger", "scatters", "frames", "buffers", "directory", "routing"}
    protocols = {
        protocol
        for protocol in vars(api).values()
        if inspect.isclass(protocol) and protocol.__module__ == api.__name__
    }
    assert protocols == {Fanin, *FACES.values()}
    assert len(CALLS) > 30


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize(("service", "name", "call"), CALLS)
def test_both_sides_have_every_call_with_the_same_signature(
    over: str, service: str, name: str, call: Callable[..., Any]
) -> None:
    implementation = getattr(getattr(OVER[over](), service), name)
    assert parameters(implementation) == parameters(call)
    assert answer(implementation) == answer(call)


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("service", FACES)
def test_a_service_is_made_once(over: str, service: str) -> None:
    services = OVER[over]()
    assert getattr(services, service) is getattr(services, service)


def test_https_has_no_call_that_the_protocols_lack() -> None:
    """What only HTTPS can do cannot be tried in memory."""
    services = OVER["https"]()
    for service, protocol in FACES.items():
        assert {name for name, _ in calls(type(getattr(services, service)))} <= {
            name for name, _ in calls(protocol)
        }


def test_the_patterns_stand_on_one_ledger_of_the_ports() -> None:
    memory = Memory()
    services = Services(memory.ports())
    frame = services.frames.open(OpenFrame(2))
    assert services.ledger.status(frame.frame_id).batch.items == 2
