"""The console behind the deployed API: its own role, which the emulator enforces, is enough for every page.

That of this folder's stack is read-only; one with buttons has a stack of its own.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import boto3
import pytest

from fanin import Failure, KeptMessage, OpenFrame, names
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import HttpsRequest, Response, SigV4, Urllib3Transport
from fanin.client.messages import read_message
from fanin.client.tracker import Tracker
from fanin.domain.batch import State
from fanin.domain.directory import PutRoute, Register
from fanin.local import Stack, down, up
from tests.e2e.deployment import Deployment, api_caller, denied, eventually

LINK = re.compile(r'(?:href|data-live|src)="(/console[^"]*)"')
REFUSED = re.compile("AccessDenied|not authorized|Could not be read|access denied", re.IGNORECASE)
KINDS = re.compile(r"[0-9]{6,}|[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/)[0-9]+(?=/|$)|\?.*")
"""What differs between addresses of the same page."""
ORIGIN = "https://fanin.example"


@dataclass
class Browser:
    """Opens pages as a browser does behind a proxy that signs: with cookies, and with its own origin."""

    root: str
    sign: SigV4
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, address: str) -> Response:
        return self._send("GET", address, {})

    def post(self, address: str, form: Mapping[str, str], origin: str = ORIGIN) -> Response:
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": origin}
        return self._send("POST", address, headers, urlencode(form).encode())

    def _send(
        self, method: str, address: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        more = {"Cookie": cookie} if cookie else {}
        request = HttpsRequest(method, self.root + address, {**headers, **more}, body)
        answer = Urllib3Transport(read_timeout=120)(request._replace(headers=self.sign(request)))
        if set_cookie := answer.headers.get("set-cookie"):
            name, _, value = set_cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer


@dataclass
class Deployed:
    """A stack with a console."""

    stack: Stack
    deployment: Deployment
    tracker: Tracker
    browser: Browser


def over(stack: Stack, deployment: Deployment, caller: boto3.Session) -> Deployed:
    sign = SigV4(caller)
    api = HttpsApi(stack.api_url, sign=sign, transport=Urllib3Transport(read_timeout=120))
    sqs = caller.client("sqs", endpoint_url=stack.endpoint_url)
    tracker = Tracker(HttpsServices(api), lambda: sqs, stack.ack_queue_url)
    return Deployed(stack, deployment, tracker, Browser(stack.api_url, sign))


@pytest.fixture
def at(stack: Stack, deployment: Deployment, caller: boto3.Session) -> Deployed:
    return over(stack, deployment, caller)


@pytest.fixture
def with_buttons(tmp_path: Path) -> Iterator[Deployed]:
    context = {"console": True, "console_write": True, "console_origins": ORIGIN}
    try:
        stack = up(tmp_path, auth=True, context=context, report=print)
        yield over(stack, Deployment(stack), api_caller(stack))
    finally:
        down(tmp_path)


def fill(at: Deployed) -> dict[str, int]:
    """Something of everything that a page shows."""
    sqs, tracker = at.stack.client("sqs"), at.tracker
    channel = sqs.create_queue(QueueName="console-channel", tags={names.CHANNEL_TAG: "yes"})["QueueUrl"]
    # A queue without the tag: the console's role may not look at it.
    untagged = sqs.create_queue(QueueName="console-untagged")["QueueUrl"]
    with tracker.batch(user_key="catalog +&/%", on_end=[{"type": "sqs", "queue_url": channel}]) as batch:
        group = batch.add(4)
        batch.send(untagged, ["waits"])
    bodies = ("x" * 20_000, "small")  # the first is too large for a row
    tracker.fail([Failure(group[n], "no price", KeptMessage(body)) for n, body in enumerate(bodies)])
    tracker.ack(group[2])
    ended = tracker.open(user_key="ended")
    group = tracker.add(ended.batch_id, 2)
    tracker.close(ended.batch_id)
    tracker.ack(group)
    tracker.directory.register(Register("fleet:eu", "car.1:a", channel))
    scatter = tracker.scatters.start("fleet:eu", {"week": 47}, user_key="weekly")
    asked = eventually(lambda: [read_message(message) for message in at.deployment.receive(channel)])[0]
    claim = tracker.scatters.claim(asked, 3, "video/mp4")
    put = Urllib3Transport()(HttpsRequest("PUT", claim.url, dict(claim.headers), b"mp4"))
    assert put.status == 200
    tracker.scatters.reply(asked, claim=claim.key)
    frame = tracker.frames.open(OpenFrame(70, reply_to=channel, ttl=600))
    tracker.buffers.define("jobs", 2)
    tracker.producer("jobs").put("one")
    tracker.routing.put(PutRoute("orders", {"source": ["shop"]}, "fleet:eu"))
    eventually(lambda: tracker.status(ended.batch_id).batch.state is State.COMPLETE)
    return {"batches": batch.id, "scatters": scatter.batch.batch_id, "frames": frame.frame_id}


def page(browser: Browser, address: str) -> tuple[str, str]:
    """What a page says; and that again, if it did not open or lacks something."""
    answer = browser.get(address)
    if answer.status == 303:  # to where an uploaded payload is
        stored = Urllib3Transport()(HttpsRequest("GET", answer.headers["location"], {}, None))
        answer = stored._replace(body=b"" if stored.status == 200 else stored.body)
    text = answer.body.decode()
    return text, f"{answer.status} {text}" if answer.status != 200 or REFUSED.search(text) else ""


def opened(browser: Browser, made: Mapping[str, int]) -> tuple[set[str], dict[str, str]]:
    """Open a page of each kind that pages link to, from some on.

    Returns:
        All links that were found; and of pages that do not open or lack something, what they say.
    """
    todo = ["/console", *(f"/console/{place}/{batch_id}" for place, batch_id in made.items())]
    seen, kinds, wrong = set(todo), set[str](), dict[str, str]()
    while todo:
        address = todo.pop()
        text, trouble = page(browser, address)
        if trouble:
            wrong[address] = trouble
        for link in sorted({unescape(link).partition("#")[0] for link in LINK.findall(text)} - seen):
            seen.add(link)
            # The pages of the batch that has everything, and one of each kind of the others.
            kind = KINDS.sub("*", link.replace(f"batches/{made['batches']}", "batches/the"))
            if kind not in kinds:
                kinds.add(kind)
                todo.append(link)
    return seen, wrong


def test_every_page_of_a_read_only_console_opens_with_the_rights_of_its_role(at):
    # Given something of everything, and a read-only console
    made = fill(at)
    # When every page is opened, Then each is there, and no call was denied to the function's role
    seen, wrong = opened(at.browser, made)
    assert wrong == {}
    for place in (
        f"live/batches/{made['batches']}",
        f"batches/{made['batches']}/failures/0/body",
        f"scatters/{made['scatters']}/payloads/0",
        f"frames/{made['frames']}",
        *("buffers/jobs", "routes/orders", "directory/fleet%3Aeu/car.1%3Aa"),
    ):
        assert [link for link in seen if link.partition("?")[0] == f"/console/{place}"], place
    # And each of these rights is needed: a page lacks something without it. A diagnosis needs others, of
    # Lambda and CloudWatch, but only of a batch that has not moved for a while.
    needed = {
        "dynamodb:BatchGetItem": "routes/orders",
        "dynamodb:Query": "scatters",
        "s3:GetObject": f"scatters/{made['scatters']}/payloads/0",
        "sqs:GetQueueAttributes": "buffers/jobs",
    }
    for action, place in needed.items():
        with at.deployment.without_permission("console", action):
            assert page(at.browser, f"/console/{place}")[1], action
    # And it has no buttons, whoever asks
    address = f"/console/batches/{made['batches']}/actions/cancel"
    assert at.browser.get(address).status == 403
    assert at.browser.post(address, {"form_token": "x"}).status in {403, 404}
    assert at.tracker.status(made["batches"]).batch.state is State.CLOSED

    # Nor could its role do anything if it had them
    batch_id = {"batch_id": {"N": str(made["batches"])}}
    for name, write in writes(at, batch_id).items():
        assert denied(write), f"the role of a read-only console may {name}"


def writes(at: Deployed, batch_id: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """Calls that write, with the credentials of the console's role."""
    keys = at.deployment.session_of("console")
    dynamodb, sqs, s3 = (
        keys.client(of, endpoint_url=at.stack.endpoint_url) for of in ("dynamodb", "sqs", "s3")
    )
    table, update = {"TableName": at.stack.batches_table}, "REMOVE salt"
    return {
        "put": lambda: dynamodb.put_item(**table, Item=batch_id),
        "update": lambda: dynamodb.update_item(**table, Key=batch_id, UpdateExpression=update),
        "delete": lambda: dynamodb.delete_item(**table, Key=batch_id),
        "send": lambda: sqs.send_message(QueueUrl=at.stack.ack_queue_url, MessageBody="x"),
        "upload": lambda: s3.put_object(Bucket=at.stack.claims_bucket, Key="x", Body=b"x"),
    }


@pytest.mark.soak
def test_a_console_with_buttons_does_what_is_pressed(with_buttons):
    at = with_buttons
    # Given an open batch, and the page that asks about closing it
    since = time.time()
    batch_id = at.tracker.open(user_key="catalog").batch_id
    at.tracker.add(batch_id, 3)
    address = f"/console/batches/{batch_id}/actions/cancel"
    text, trouble = page(at.browser, address)
    assert trouble == ""
    form = {"form_token": re.findall(r'name="form_token" value="([0-9a-f]+)"', text)[0]}
    # When the form comes from elsewhere, or without the token, Then nothing is done
    assert at.browser.post(address, form, origin="https://evil.example").status == 403
    assert at.browser.post(address, {"form_token": "0"}).status == 403
    assert at.tracker.status(batch_id).batch.state is State.OPEN
    # When it comes from the page, Then it is done
    assert at.browser.post(address, form).status == 200
    assert at.tracker.status(batch_id).batch.state is State.CANCELLED

    # And the log of the function says who did it
    def logged() -> list[dict[str, Any]]:
        # The emulator may keep the last lines of a worker until its next invocation.
        at.browser.get("/console")
        return at.deployment.actions(since, of="console")

    (line,) = eventually(logged)
    assert (line["action"], line["object"]) == ("cancelBatch", {"batch_id": str(batch_id)})
    assert (line["caller"]["kind"], line["outcome"]) == ("iam", {"status": 200})
    assert line["caller"]["id"].endswith(":user/caller")
    assert line["request_id"]
