"""Roles, their policies and those of resources, from a synthesized template, with all ARNs written out.

A resource that CloudFormation would name has its logical id, without the hash, as its name.
"""

import re
from collections.abc import Mapping
from typing import Any

from tests.infra.iam.policies import Statement

ACCOUNT, REGION = "111122223333", "eu-west-1"
PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackId": (
        f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/fanin/00000000-0000-4000-8000-000000000000"
    ),
    "AWS::StackName": "fanin",
    "AWS::URLSuffix": "amazonaws.com",
}
HASH = re.compile(r"[0-9A-F]{8}$")
NAMED_BY = {
    "AWS::Events::EventBus": "Name",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::Scheduler::ScheduleGroup": "Name",
}
"""Type → the property that names a resource, if the template names it."""
ARNS = {
    "AWS::DynamoDB::Table": "dynamodb:{where}:table/{name}",
    "AWS::EMRServerless::Application": "emr-serverless:{where}:/applications/{name}",
    "AWS::Events::EventBus": "events:{where}:event-bus/{name}",
    "AWS::Events::Rule": "events:{where}:rule/{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::KMS::Key": "kms:{where}:key/{name}",
    "AWS::Lambda::Function": "lambda:{where}:function:{name}",
    "AWS::Logs::LogGroup": "logs:{where}:log-group:{name}:*",
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::Scheduler::ScheduleGroup": "scheduler:{where}:schedule-group/{name}",
    "AWS::SecretsManager::Secret": "secretsmanager:{where}:secret:{name}-0",
    "AWS::SQS::Queue": "sqs:{where}:{name}",
    "AWS::StepFunctions::StateMachine": "states:{where}:stateMachine:{name}",
}
POLICIES = {"AWS::SQS::QueuePolicy": "Queues", "AWS::S3::BucketPolicy": "Bucket"}


class Templates:
    """The templates of stacks of one app.

    Args:
        templates: name of the stack → template.
    """

    def __init__(self, templates: Mapping[str, Mapping[str, Any]]) -> None:
        self._resources: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        for template in templates.values():
            self._resources |= template["Resources"]
            for name, output in template.get("Outputs", {}).items():
                self._outputs[output.get("Export", {}).get("Name", name)] = output["Value"]

    @property
    def roles(self) -> list[str]:
        """Logical ids of all roles."""
        return self._of_type("AWS::IAM::Role")

    def _of_type(self, *kinds: str) -> list[str]:
        return [name for name, resource in self._resources.items() if resource["Type"] in kinds]

    def of_type(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        """Logical ids and properties of all resources of a type, with references replaced."""
        return [(name, self.text(self._resources[name]["Properties"])) for name in self._of_type(kind)]

    def role_of(self, function: str) -> str:
        """The role of a function, given by its name or ARN; without its hash."""
        name = function.rpartition(":")[2]
        for _, properties in self.of_type("AWS::Lambda::Function"):
            role: str = properties["Role"].rpartition("/")[2]
            if name in (properties.get("FunctionName"), role.removesuffix("Role") + "Function"):
                return role
        raise KeyError(function)

    def log_group_arn(self, name: str) -> str:
        """The ARN of a log group, as policies name it."""
        return "arn:aws:" + ARNS["AWS::Logs::LogGroup"].format(where=f"{REGION}:{ACCOUNT}", name=name)

    def statements(self, role: str) -> list[Statement]:
        """What all policies of a role say."""
        properties = self._resources[role]["Properties"]
        documents = [policy["PolicyDocument"] for policy in properties.get("Policies", ())]
        documents += [
            self._resources[name]["Properties"]["PolicyDocument"]
            for name in self._of_type("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
            if {"Ref": role} in self._resources[name]["Properties"].get("Roles", ())
        ]
        return [self.text(one) for document in documents for one in document["Statement"]]

    def trust(self, name: str) -> list[Statement]:
        """What the trust policy of a role says; the name is without its hash."""
        (role,) = (one for one in self.roles if HASH.sub("", one) == name)
        trusted = self.text(self._resources[role]["Properties"]["AssumeRolePolicyDocument"])
        return list(trusted["Statement"])

    def about(self, arn: str) -> list[Statement]:
        """What the policy of a resource says."""
        found = []
        for name in self._of_type(*POLICIES):
            properties = self._resources[name]["Properties"]
            subjects = properties[POLICIES[self._resources[name]["Type"]]]
            for subject in subjects if isinstance(subjects, list) else [subjects]:
                of = self.arn(subject["Ref"])
                if arn == of or arn.startswith(f"{of}/"):
                    found += [self.text(one) for one in properties["PolicyDocument"]["Statement"]]
        for name in self._of_type("AWS::KMS::Key"):
            if arn == self.arn(name):
                found += [
                    self.text({**one, "Resource": arn})
                    for one in self._resources[name]["Properties"]["KeyPolicy"]["Statement"]
                ]
        return found

    def name(self, logical_id: str) -> str:
        """The name of a resource: that of the template, or else its logical id without the hash."""
        resource = self._resources[logical_id]
        given = resource.get("Properties", {}).get(NAMED_BY.get(resource["Type"], ""))
        return str(self.text(given)) if given is not None else HASH.sub("", logical_id)

    def arn(self, logical_id: str) -> str:
        """The ARN of a resource."""
        kind = self._resources[logical_id]["Type"]
        where, name = f"{REGION}:{ACCOUNT}", self.name(logical_id)
        return "arn:aws:" + ARNS[kind].format(where=where, account=ACCOUNT, name=name)

    def text(self, value: Any) -> Any:  # noqa: PLR0911  one for each function of templates
        """A value of a template with its references and functions replaced."""
        match value:
            case {"Ref": str(name)}:
                return PSEUDO.get(name) or self.name(name) if name in self._resources else PSEUDO[name]
            case {"Fn::GetAtt": [name, attribute]}:
                return self._attribute(name, attribute)
            case {"Fn::Join": [by, parts]}:
                return by.join(self.text(part) for part in parts)
            case {"Fn::Select": [index, parts]}:
                return self.text(parts)[int(index)]
            case {"Fn::Split": [by, whole]}:
                return self.text(whole).split(by)
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{([\w:]+)\}", lambda match: self.text({"Ref": match[1]}), text)
            case {"Fn::ImportValue": name} | {"Fn::GetStackOutput": {"OutputName": name}}:
                return self.text(self._outputs[name])
            case dict():
                return {name: self.text(one) for name, one in value.items()}
            case list():
                return [self.text(one) for one in value]
        return value

    def _attribute(self, name: str, attribute: str) -> str:
        if attribute == "StreamArn":
            return f"{self.arn(name)}/stream/2026-01-01T00:00:00.000"
        if attribute == "ApplicationId":
            return self.name(name)
        if attribute in ("Arn", "Id"):
            return self.arn(name)
        return f"{name}.{attribute}"
