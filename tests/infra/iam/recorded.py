"""Questions to IAM that were recorded while the functions ran, and who may ask them on AWS."""

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fanin.client.local_stack import FOLDER
from fanin.local.stack import CHECKOUT, FANIN
from fanin.local.synth import synthesize
from tests.infra.iam.policies import Decision, Request, Statement, decide
from tests.infra.iam.templates import ACCOUNT, HASH, REGION, Templates

FILE = Path(__file__).with_name("recorded.json")
VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "uuid"),
    (re.compile(r"(?<=[-/])[0-9a-f]*[0-9][0-9a-f]*(?=$|[-/])"), "0"),
)
"""What differs from run to run in names of queues, schedules, rules and objects → what stands for it."""
APP = Path(__file__).with_name("app.py")
UNBUNDLED = {"aws:cdk:bundling-stacks": []}
SETTINGS = {"console": True, "console_write": True, "webhook_hosts": "localhost:*", "unrouted": "keep"}
"""Settings of a deployment on AWS that has all functions."""
SECURE = {"aws:SecureTransport": "true"}
OURS = "TrackerFunctions"
"""What the names of the roles of fanin's own functions begin with."""
CONSENT = {"sqs:ListQueueTags", "sqs:GetQueueAttributes"}
"""What is asked of any queue that a caller names; where its owner has set no tag, the answer is a denial."""
TAGS = ("aws:ResourceTag/fanin:channel", "aws:ResourceTag/fanin:tracked")


class Question(NamedTuple):
    """What a role asked.

    Attributes:
        role: logical id of the role, without its hash.
        action: such as ``sqs:SendMessage``.
        resource: ARN, with logical ids for the names that CloudFormation gives.
        context: condition key → value or values.
    """

    role: str
    action: str
    resource: str
    context: dict[str, Any]

    @property
    def request(self) -> Request:
        principal = f"arn:aws:iam::{ACCOUNT}:role/{self.role}"
        return Request(self.action, self.resource, {**SECURE, **self.context}, principal)


def in_names_of_aws(role: str, action: str, resource: str, context: dict[str, Any]) -> Question:
    """A question that was asked on the emulator, with account and region of the template for AWS."""
    text = json.dumps([resource, context])
    text = re.sub(r"(arn:aws:[a-z0-9-]+:)(?:[a-z0-9-]+)?(:)0{12}:", rf"\1{REGION}\g<2>{ACCOUNT}:", text)
    text = text.replace(f"arn:aws:iam:{REGION}:", "arn:aws:iam::")
    return Question(role, action, *json.loads(text))


def merged(questions: Iterable[Question]) -> list[Question]:
    """Questions that differ only in the values of keys that have several, as one question with all values.

    Policies ask of such a key that all its values match, so a policy allows the one exactly if it allows all.
    """
    found: dict[str, Question] = {}
    for one in questions:
        context = {
            name: value if isinstance(value, str) else tuple(value) for name, value in one.context.items()
        }
        single = {name: value for name, value in context.items() if isinstance(value, str)}
        *place, name = one.resource.split(":", 5)
        for form, constant in VARYING:
            name = form.sub(constant, name)
        resource = ":".join([*place, name])
        same = json.dumps([one.role, one.action, resource, single, sorted(context)], sort_keys=True)
        known = found[same].context if same in found else {}
        several = {
            name: tuple(sorted({*value, *known.get(name, ())}))
            for name, value in context.items()
            if not isinstance(value, str)
        }
        found[same] = Question(one.role, one.action, resource, {**single, **several})
    return [found[same] for same in sorted(found)]


def written(questions: Iterable[Question]) -> str:
    """Questions as JSON, one a line."""
    lines = ",\n".join(json.dumps(question, sort_keys=True) for question in questions)
    return f"[\n{lines}\n]\n"


def read(path: Path = FILE) -> list[Question]:
    """Questions from a file."""
    return merged(Question(*line) for line in json.loads(path.read_text()))


@cache
def on_aws() -> Templates:
    """The template for AWS with all functions; sessions of tests share it until an input changes."""
    assembly = CHECKOUT / FOLDER / "cdk.out" / "recorded"
    synthesize(APP, assembly, inputs=[APP, *FANIN.inputs], context={**SETTINGS, **UNBUNDLED})
    return Templates({"fanin": json.loads((assembly / "fanin.template.json").read_text())})


def policies(templates: Templates) -> dict[str, list[Statement]]:
    """Logical id of each role, without its hash → its statements."""
    return {HASH.sub("", role): templates.statements(role) for role in templates.roles}


def denied(questions: Iterable[Question]) -> list[str]:
    """The questions of fanin's functions that AWS would answer otherwise than the code needs it, as text."""
    templates = on_aws()
    statements = policies(templates)
    found = []
    for one in questions:
        if one.role.startswith(OURS) and not is_about_another_stack(one):
            decision = decide(one.request, statements[one.role], templates.about(one.resource))
            if (decision is Decision.ALLOW) is asks_without_consent(one):
                found.append(f"{one.role}: {one.action} on {one.resource}: {decision.value}; {one.context}")
    return found


def is_about_another_stack(question: Question) -> bool:
    """Whether a question is about a ``TrackedQueue`` of an app, which brings its policy with it."""
    name = question.resource.rpartition(":")[2]
    return TAGS[1] in question.context and name.endswith("DeadLetters") and not name.startswith("Tracker")


def asks_without_consent(question: Question) -> bool:
    """Whether a question is about a queue of somebody who has not tagged it; AWS must deny it."""
    name = question.resource.rpartition(":")[2]
    ours = name.startswith(("Tracker", "fanin-buffer-"))
    return question.action in CONSENT and not ours and not set(TAGS) & set(question.context)
