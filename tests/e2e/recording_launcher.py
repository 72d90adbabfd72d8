"""Runs the emulator as ``fanin.local`` does, and writes down what IAM would be asked for each call of a role.

The emulator's own Python runs this script in place of the launcher, so it imports nothing of fanin. The calls
are those that arrive over the wire, signed with the credentials of a role. Each line of the file is one
question: the role, the action, the resource and the condition keys. A question is written once.
Numbers in partition keys of rows are written as 0, since no policy tells one batch from another. Resources
have the names of the template; those of a tracker in another stack have the names of fanin's own.

Calls that the emulator denies to roles of a stack go into a second file: a function may go on after one, and
no test of what it does would see that it always does without. Tests simulate outages by policies that deny,
which do not count.
"""

import importlib
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CALLS = "calls.jsonl"
DENIALS = "denials.txt"
HASH = re.compile(r"[0-9A-F]{8}$")
BUS = "AWS::Events::EventBus"
SECRET = "AWS::SecretsManager::Secret"
RANDOM = "-0"
"""What stands for the random characters that AWS adds to the name of a secret, in its ARN."""
QUEUE, MAKES = "arn:aws:sqs:", "sqs:CreateQueue"
TRACKER, TABLE = "Tracker", "StorageBatches"
LEADING = "dynamodb:LeadingKeys"
TRYING = "/test"
"""End of the ARN of a session in which a test makes calls that no function makes."""


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _names(formation: Any) -> dict[str, str]:
    """Names of all resources of all stacks, as they are → as the template of fanin's own stack has them.

    A name that CloudFormation gave becomes the logical id without its hash; the prefix of a deployment, which
    is the name of its bus, becomes that of fanin's own.
    """
    found = {}
    for stack in formation._stacks.values():
        resources = stack.get("_resources", {})
        logical = {name: HASH.sub("", name) for name in resources}
        table = next((name for name in logical.values() if name.endswith(TABLE)), TABLE)
        tracker = table.removesuffix(TABLE)
        for name, resource in resources.items():
            physical = re.split("[:/]", str(resource.get("PhysicalResourceId")))[-1]
            if name.lower() in physical.lower():
                own = bool(tracker) and logical[name].startswith(tracker)
                named = TRACKER + logical[name].removeprefix(tracker) if own else logical[name]
                found[physical] = f"{named}{RANDOM}" if resource.get("ResourceType") == SECRET else named
            elif resource.get("ResourceType") == BUS:
                found[physical] = "fanin"
    return found


class Recorder:
    """Writes down the questions of all calls from now on.

    Args:
        into: the file of questions; that of denials lies beside it.
    """

    def __init__(self, into: Path) -> None:
        iam = ROOT / "tests" / "infra" / "iam"
        self._calls, self._wire = _load(iam / "calls.py"), _load(iam / "wire.py")
        self._evaluator: Any = importlib.import_module("ministack.core.iam_evaluator")
        self._formation: Any = importlib.import_module("ministack.services.cloudformation")
        self._queues: Any = importlib.import_module("ministack.services.sqs")
        self._responses: Any = importlib.import_module("ministack.core.responses")
        self._file = into.open("a", buffering=1)
        self._denials = into.with_name(DENIALS).open("a", buffering=1)
        self._seen: set[str] = set()
        self._names: dict[str, str] = {}

    def watch(self) -> None:
        """Stand before the functions by which the emulator learns the action of a request, and denies it."""
        actions: Any = importlib.import_module("ministack.core.iam_actions")
        extract = actions.extract_iam_action

        def recording(*of: Any) -> Any:
            self._note(*of)
            return extract(*of)

        actions.extract_iam_action = recording
        deny = actions.access_denied_response

        def denying(service: str, action: str, caller: str, *of: Any, **more: Any) -> Any:
            if not more.get("explicit_deny") and self._stands(role := self._role(caller)):
                self._denials.write(f"{role} {action}\n")
            return deny(service, action, caller, *of, **more)

        actions.access_denied_response = denying

    def _note(self, service: str, method: str, path: str, headers: Any, *more: Any) -> None:
        role, (body, query) = self._role(self._evaluator.caller_arn()), more
        if not role:
            return
        texts = {name: value[0] if isinstance(value, list) else value for name, value in query.items()}
        where = f"{path}?{'&'.join(f'{name}={value}' for name, value in texts.items())}"
        wire = self._wire.Wire(method, where, headers.get("x-amz-target", ""), body)
        place = self._calls.Place(self._responses.get_account_id(), self._responses.get_region())
        try:
            asked = self._calls.asked(*self._wire.of_wire(wire), place, self._tags)
        except Exception as error:  # noqa: BLE001  the emulator must go on; the tests report it
            asked = [self._calls.Asked("unknown", f"{service} {error!r}", {})]
        for one in asked:
            # A queue that is gone has no tags that a policy could ask for, and the call fails all the same.
            if not one.resource.startswith(QUEUE) or one.action == MAKES or self._queue(one.resource):
                self._write(role, one)

    @staticmethod
    def _role(caller: str) -> str:
        """The role that calls; empty for a user, and for a test that only tries what a role may do."""
        _, found, session = caller.partition(":assumed-role/")
        return session.partition("/")[0] if found and not caller.endswith(TRYING) else ""

    def _stands(self, role: str) -> bool:
        """Whether a role belongs to a stack that is not being removed."""
        return any(
            not stack["StackStatus"].startswith("DELETE")
            and any(role == one.get("PhysicalResourceId") for one in stack.get("_resources", {}).values())
            for stack in self._formation._stacks.values()
        )

    def _write(self, role: str, one: Any) -> None:
        context = dict(one.context)
        if LEADING in context:
            context[LEADING] = sorted({re.sub(r"\d+", "0", key) for key in context[LEADING]})
        question = [role, one.action, one.resource, context]
        line = json.dumps(question, sort_keys=True)
        if line not in self._seen:
            self._seen.add(line)
            self._names.update(_names(self._formation))
            self._file.write(json.dumps(self._named(question), sort_keys=True) + "\n")

    def _tags(self, arn: str) -> dict[str, str]:
        tags = (self._queue(arn) or {}).get("tags", {})
        # Those of CloudFormation differ from run to run, and no policy names them.
        return {name: value for name, value in tags.items() if not name.startswith("aws:")}

    def _queue(self, arn: str) -> dict[str, Any] | None:
        name = arn.rpartition(":")[2]
        return next((queue for queue in self._queues._queues.values() if queue["name"] == name), None)

    def _named(self, part: Any) -> Any:
        if isinstance(part, str):
            return re.sub(r"[\w-]+", lambda match: self._name(match[0]), part)
        if isinstance(part, dict):
            return {name: self._named(one) for name, one in part.items()}
        return [self._named(one) for one in part]

    def _name(self, word: str) -> str:
        prefix, dash, rest = word.partition("-")
        own = f"fanin-{rest}" if dash and self._names.get(prefix) == "fanin" else word
        secret = self._names.get(word.rpartition("-")[0], "")
        return self._names.get(word) or (secret if secret.endswith(RANDOM) else own)


def hurry() -> None:
    """Look at schedules often, and pause for a moment after a function has failed: tests wait for both."""
    for service, interval in (
        ("scheduler", "_SCHEDULE_TICK_INTERVAL"),
        ("eventbridge", "_SCHEDULER_TICK_INTERVAL"),
        ("lambda_svc", "_ESM_BACKOFF_SECONDS"),
    ):
        setattr(importlib.import_module(f"ministack.services.{service}"), interval, 0.2)


if __name__ == "__main__":
    launcher = _load(ROOT / "layers" / "fanin" / "python" / "fanin" / "local" / "launcher.py")
    tune, calls_file = launcher._tune, Path(sys.argv[1]).with_name(CALLS)

    def tune_and_record(layers: str) -> None:
        tune(layers)
        hurry()
        Recorder(calls_file).watch()

    launcher._tune = tune_and_record
    launcher.main(*sys.argv[1:])
