"""docs/how-to/containers.md: its app has permissions, times and scaling; its YAML fits together."""

import json
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import save
from tests.docs.test_how_to_lambda_consumer import synthesized

PAGE = "how-to/containers.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("containers")
    save(PAGE, folder)
    return folder


@pytest.mark.soak
def test_the_service_on_ecs(folder):
    resources = synthesized(folder).values()
    (task,) = [one for one in resources if one["Type"] == "AWS::ECS::TaskDefinition"]
    (container,) = task["Properties"]["ContainerDefinitions"]
    assert container["StopTimeout"] == 120
    assert container["HealthCheck"]["Command"][:3] == ["CMD", "python", "-c"]
    assert {one["Name"] for one in container["Environment"]} == {
        "FANIN_API_URL",
        "FANIN_ACK_QUEUE_URL",
        "QUEUE_URL",
    }
    (policy,) = [
        json.dumps(one)
        for one in resources
        if one["Type"] == "AWS::IAM::Policy" and "TaskTaskRole" in json.dumps(one["Properties"]["Roles"])
    ]
    for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:SendMessage", "/POST/v1/acks"):
        assert action in policy
    assert "dynamodb:" not in policy
    steps = [
        one["Properties"] for one in resources if one["Type"] == "AWS::ApplicationAutoScaling::ScalingPolicy"
    ]
    assert len(steps) == 2  # down when it is empty, up when it is long


@pytest.mark.soak
def test_the_image_is_for_the_processor_of_the_task(folder):
    # Given a task that names no processor, which Fargate then runs on x86_64
    resources = synthesized(folder).values()
    (task,) = [one["Properties"] for one in resources if one["Type"] == "AWS::ECS::TaskDefinition"]
    assert "RuntimePlatform" not in task
    # Then its image is built for that, whatever machine builds it
    (image,) = json.loads((folder / "out" / "shop.assets.json").read_text())["dockerImages"].values()
    assert image["source"]["platform"] == "linux/amd64"


def test_the_objects_of_kubernetes(folder):
    deployment, scaled = yaml.safe_load_all((folder / "consumer.yaml").read_text())
    assert (deployment["kind"], scaled["kind"]) == ("Deployment", "ScaledObject")
    assert scaled["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    pod = deployment["spec"]["template"]
    assert pod["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    (container,) = pod["spec"]["containers"]
    urls = {one["name"]: one["value"] for one in container["env"]}
    (trigger,) = scaled["spec"]["triggers"]
    assert trigger["metadata"]["queueURL"] == urls["QUEUE_URL"]
