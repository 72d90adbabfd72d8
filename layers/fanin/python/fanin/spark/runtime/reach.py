"""Whether a job reaches what it needs, asked in its first seconds, before it reads or writes anything.

Without a VPC, EMR Serverless lets jobs reach a few services only, and SQS is not among them. A request to
another one gets no answer, which botocore takes minutes to give up, in each task.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from botocore.utils import get_environ_proxies

from fanin.adapters.aws import client_factory, translated
from fanin.errors import Unreachable

TIMEOUT: Final = 4.0
"""Seconds for one connection, in which a lost packet is sent again twice."""
_LOCAL_ADVICE: Final = (
    "Is the local stack up? `fanin local status` tells, `fanin local up` starts it. A stack that was"
    ' started again may have other addresses: run `eval "$(fanin local env)"` again, or set'
    " FANIN_PROFILE=local instead"
)
_EMR_ADVICE: Final = (
    "On EMR Serverless jobs reach such services only through a VPC: deploy with the setting"
    " pipeline_network, or name subnets that have a way there with pipeline_subnets and"
    " pipeline_security_groups (docs/how-to/spark)"
)
_PORTS: Final = {"http": 80, "https": 443}
_NAMES: Final = {
    "dynamodb": "DynamoDB",
    "scheduler": "EventBridge Scheduler",
    "sqs": "SQS",
}


def aws(*services: str) -> dict[str, str]:
    """Name → URL of services of AWS, as boto3 would call them from this process.

    Raises:
        NotConfigured: no region is set.
    """
    with translated():
        clients = {name: client_factory(name)() for name in services}
        return {_NAMES[name]: client.meta.endpoint_url for name, client in clients.items()}


def require(endpoints: Mapping[str, str], *, timeout: float = TIMEOUT) -> None:
    """Connect to all of them at once, and to what a proxy's setting names instead; send nothing.

    Raises:
        Unreachable: there is no connection to some of them; says which, why, and what to do.
    """
    if not endpoints:
        return
    with ThreadPoolExecutor(len(endpoints)) as pool:
        answers = pool.map(lambda url: _why_not(url, timeout), endpoints.values())
        failed = {name: why for name, why in zip(endpoints, answers, strict=True) if why}
    if failed:
        told = "; ".join(f"{name} at {endpoints[name]}: {why}" for name, why in failed.items())
        here = all(_on_this_machine(endpoints[name]) for name in failed)
        advice = _LOCAL_ADVICE if here else _EMR_ADVICE
        raise Unreachable(f"this job cannot reach {told}. Nothing was read or written. {advice}")


def _on_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _why_not(url: str, timeout: float) -> str:
    """Why nothing listens at a URL, or at its proxy; empty if something does."""
    at = urlsplit(url)
    if proxy := get_environ_proxies(url).get(at.scheme):
        at = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    try:
        with closing(socket.create_connection((at.hostname or "", at.port or _PORTS[at.scheme]), timeout)):
            return ""
    except TimeoutError:
        return f"no answer within {timeout:g} seconds"
    except OSError as error:
        return error.strerror or str(error)
