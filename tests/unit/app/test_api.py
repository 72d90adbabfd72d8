"""The Protocols of the six services, held against the use cases that implement them."""

from __future__ import annotations

import inspect

import pytest

from fanin.adapters.memory import Memory
from fanin.app import api
from fanin.app.services import Services

SERVICES = ["ledger", "scatters", "frames", "buffers", "directory", "routing"]
CALLS = [
    (service, name)
    for service in SERVICES
    for name, member in vars(getattr(api, service.capitalize())).items()
    if inspect.isfunction(member) and not name.startswith("_")
]


def test_fanin_has_these_services() -> None:
    assert [name for name, member in vars(api.Fanin).items() if isinstance(member, property)] == SERVICES


@pytest.mark.parametrize(("service", "call"), CALLS)
def test_a_use_case_takes_what_its_protocol_says_with_the_same_defaults(service: str, call: str) -> None:
    said = inspect.signature(getattr(getattr(api, service.capitalize()), call))
    implementation = getattr(type(getattr(Services(Memory().ports()), service)), call)
    done = inspect.signature(implementation)

    assert list(done.parameters.values())[1:] == [
        parameter.replace(annotation=done.parameters[name].annotation)
        for name, parameter in list(said.parameters.items())[1:]
    ]


@pytest.mark.parametrize(("service", "call"), CALLS)
def test_every_call_of_a_protocol_is_documented(service: str, call: str) -> None:
    assert inspect.getdoc(getattr(getattr(api, service.capitalize()), call))
