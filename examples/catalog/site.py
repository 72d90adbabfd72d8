"""Sets up the demo: an emulator with fanin and the example deployed to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from examples.catalog.meter import Meter
from examples.deployed import deployed, example
from fanin.local import Stack, Steps

HERE = Path(__file__).parent
APP = example(HERE, "stack.py", "consumer", "opener")


@dataclass(frozen=True)
class Site:
    """Where everything is.

    Attributes:
        stack: the stack of fanin.
        outputs: outputs of the example's stack.
        functions: names of fanin's functions.
        acks: ARN of the function that reads the ack queue.
    """

    stack: Stack
    outputs: dict[str, str]
    functions: list[str]
    acks: str


@contextmanager
def site(root: Path, step: Steps) -> Iterator[Site]:
    """Start an emulator with fanin and the example deployed to it, and stop it afterwards.

    Args:
        root: folder whose ``.fanin`` folder gets the state and the log of the emulator.
        step: shows what happens.
    """
    with deployed(root, step, APP) as stack:
        yield Site(stack, stack.outputs, functions(stack), reader(stack, stack.ack_queue_url))


def functions(stack: Stack, name: str = "fanin") -> list[str]:
    """Names of the functions of a stack."""
    pages = stack.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name)
    return [
        resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
        if resource["ResourceType"] == "AWS::Lambda::Function"
    ]


def reader(stack: Stack, queue_url: str) -> str:
    """ARN of the function that reads a queue."""
    attributes = stack.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
    arn = attributes["Attributes"]["QueueArn"]
    (source,) = stack.client("lambda").list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
    return str(source["FunctionArn"])


@contextmanager
def metered(place: Site) -> Iterator[Meter]:
    """Redirect the requests of fanin's functions to DynamoDB through a meter."""
    lambdas = place.stack.client("lambda")
    with Meter(place.stack.endpoint_url) as meter:
        for name in place.functions:
            variables = lambdas.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
            variables["AWS_ENDPOINT_URL_DYNAMODB"] = meter.url
            lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": variables})
        yield meter
