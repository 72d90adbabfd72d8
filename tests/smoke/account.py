"""The AWS account of a smoke test, and what was deployed there."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3

from fanin import names
from fanin.entry.settings import Settings
from fanin.local.aws import api_url

ON_AWS = ("amazonaws.com", "amazonaws.com.cn", "api.aws")


@dataclass(frozen=True)
class Account:
    """An account, through a profile of the AWS configuration.

    Attributes:
        profile: name of the profile; it names the region, too.
    """

    profile: str

    @cached_property
    def session(self) -> boto3.Session:
        return boto3.Session(profile_name=self.profile)

    @property
    def region(self) -> str:
        """Its region.

        Raises:
            LookupError: neither profile nor environment names one.
        """
        if not self.session.region_name:
            raise LookupError(f"profile {self.profile} has no region; set one with aws configure")
        return self.session.region_name

    @cached_property
    def identity(self) -> dict[str, str]:
        """``Account`` and ``Arn`` of the caller."""
        return self.client("sts").get_caller_identity()

    @cached_property
    def emulator(self) -> str | None:
        """URL of the emulator, if the profile leads to one; None on AWS."""
        url: str = self.client("sts").meta.endpoint_url
        return None if url.endswith(ON_AWS) else url

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead boto3 and the CDK there."""
        endpoint = {"AWS_ENDPOINT_URL": self.emulator} if self.emulator else {}
        regions = {"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}
        return {"AWS_PROFILE": self.profile, **regions, **endpoint}

    def client(self, service: str) -> Any:
        return self.session.client(service)


@dataclass(frozen=True)
class Deployed:
    """A stack in an account; what tests and the demo read of the local stack, it has, too.

    Attributes:
        account: where it is.
        name: of the stack; names of everything that tests make begin with it.
        outputs: of all stacks.
    """

    account: Account
    name: str
    outputs: dict[str, str]

    def __getattr__(self, setting: str) -> Any:
        return getattr(Settings(self.variables), setting)

    @property
    def variables(self) -> dict[str, str]:
        """Those of the library and the functions, which name the parts of the stack."""
        return {variable: self.outputs[output] for variable, output in names.OUTPUTS.items()}

    @property
    def work_queue_url(self) -> str:
        return self.outputs[names.OUTPUTS[names.ENV_WORK_QUEUE_URL]]

    @property
    def api_url(self) -> str:
        output = self.outputs[names.OUTPUT_API_URL]
        return api_url(self.account.emulator, output) if self.account.emulator else output

    @property
    def region(self) -> str:
        return self.account.region

    def session(self) -> boto3.Session:
        return self.account.session

    def client(self, service: str) -> Any:
        return self.account.client(service)

    def environment(self) -> dict[str, str]:
        """Variables that lead boto3, the library and the jobs there."""
        return {**self.account.environment, **self.variables, names.ENV_API_URL: self.api_url}

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, file: Path) -> Deployed:
        values = json.loads(file.read_text())
        return cls(Account(**values["account"]), values["name"], values["outputs"])
