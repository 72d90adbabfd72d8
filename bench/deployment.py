"""The service in memory with its functions, which counts what AWS would charge for."""

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from bench.world import World
from fanin import Tracker
from fanin.adapters.memory.sqs import InMemorySqs, QueueStore
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import HttpsRequest, Response, unsigned
from fanin.domain.costs import ACCESS_LINE, BASE_MS, FAST_GB, GB, PER_LINE, SLOW_GB, WRITE_MS, Usage
from fanin.entry import queues
from fanin.entry.http.application import application, serve
from fanin.entry.observe import logger, observed
from fanin.entry.unhandled import respond

WORD_BYTES = 250
PER_REQUEST = 10
"""Messages that one request to SQS receives or deletes."""


class Deployment:
    """The service in memory with its functions; it counts what AWS would charge for.

    Attributes:
        world: the stores.
        usage: what was consumed so far, without rows.
    """

    def __init__(self) -> None:
        self.world = World()
        self.usage = Usage()
        self._sqs = InMemorySqs(QueueStore(self.world.clock, self.world.memory.random), self.world.accesses)
        self.acks_url = self._sqs.create_queue(QueueName="acks", Attributes={})["QueueUrl"]
        self._services = Services(self.world.memory.ports())
        self._settler = self.world.process()
        self._settled = 0
        app = application(lambda: self._services)
        self._serve = observed(lambda event, context: serve(app, event, context))
        self._acknowledge = observed(
            lambda event, _: respond(
                queues.acknowledge(event["Records"], self._services.ledger), _never, _never
            )
        )
        self._heal = observed(lambda event, _: self._settler.heal(event["keys"]))

    def tracker(self) -> Tracker:
        """What a consumer uses: the API over HTTPS, and the ack queue."""
        api = HttpsApi("https://api.example.com", sign=unsigned, transport=self._request)
        return Tracker(HttpsServices(api), lambda: self._sqs, self.acks_url)

    def direct(self) -> Tracker:
        """What a consumer uses that may write the tables."""
        return Tracker(self._services, lambda: self._sqs, self.acks_url)

    def run_acks(self, most: int) -> bool:
        """Let the function of the ack queue take up to so many messages; false if there are none."""
        messages: list[dict[str, Any]] = []
        while len(messages) < most:
            found = self._sqs.receive_message(
                QueueUrl=self.acks_url, MaxNumberOfMessages=min(PER_REQUEST, most - len(messages))
            ).get("Messages", [])
            if not found:
                break
            self.usage += Usage(queue_requests=2)  # receive, and delete
            self._sqs.delete_message_batch(
                QueueUrl=self.acks_url,
                Entries=[
                    {"Id": str(at), "ReceiptHandle": one["ReceiptHandle"]} for at, one in enumerate(found)
                ],
            )
            messages += found
        if not messages:
            return False
        records = [
            {"messageId": one["MessageId"], "receiptHandle": one["ReceiptHandle"], "body": one["Body"]}
            for one in messages
        ]
        answer = self._invoke(self._acknowledge, {"Records": records}, FAST_GB)
        if answer["batchItemFailures"]:
            raise AssertionError(f"messages of the ack queue were not handled: {answer}")
        self.settle()
        return True

    def settle(self) -> None:
        """Let the settler look at every word that was finished, in an invocation for each."""
        finished = self.world.memory.words.finished
        while self._settled < len(finished):
            self._settled += 1
            self._invoke(self._heal, {"keys": [finished[self._settled - 1]]}, SLOW_GB)

    def bill(self) -> Usage:
        """All that was consumed, with rows, messages sent, storage for a month and the event of the end."""
        accesses = self.world.accesses
        rows = Usage(
            writes=sum(n for call, n in accesses.writes.items() if not call.startswith("sqs.")),
            reads=sum(n for call, n in accesses.reads.items() if not call.startswith("sqs.")),
            queue_requests=sum(
                n for call, n in (accesses.sends + accesses.writes).items() if "sqs.send" in call
            ),
            stored_gb_months=len(self.world.memory.words.finished) * WORD_BYTES / GB,
        )
        announced = Usage(invocations=1, events=1, gb_seconds=SLOW_GB * BASE_MS / 1000)
        return self.usage + rows + announced

    def _request(self, request: HttpsRequest) -> Response:
        url = urlsplit(request.url)
        event = {
            "version": "2.0",
            "rawPath": url.path,
            "rawQueryString": url.query,
            "queryStringParameters": dict(parse_qsl(url.query)),
            "headers": dict(request.headers),
            "requestContext": {
                "http": {"method": request.method, "path": url.path},
                "requestId": "r",
                "stage": "$default",
            },
            "body": (request.body or b"").decode(),
            "isBase64Encoded": False,
        }
        answer = self._invoke(self._serve, event, FAST_GB)
        self.usage += Usage(api_requests=1, log_bytes=ACCESS_LINE + PER_LINE)
        self.settle()
        headers = {name.lower(): value for name, value in answer["headers"].items()}
        return Response(answer["statusCode"], headers, answer["body"].encode())

    def _invoke(self, handler: Callable[[Any, Any], Any], event: Any, memory: float) -> Any:
        """Run a function, and count its time and its lines."""
        context = SimpleNamespace(
            aws_request_id="r",
            function_name="f",
            memory_limit_in_mb=int(memory * 1024),
            invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:f",
            get_remaining_time_in_millis=lambda: 30_000,
        )
        before = self.world.accesses.writes.total()
        with redirect_stdout(io.StringIO()) as log:
            logger.registered_handler.stream = log  # type: ignore[attr-defined]  # it keeps that of its start
            answer = handler(event, context)
        lines = log.getvalue().splitlines()
        milliseconds = BASE_MS + WRITE_MS * (self.world.accesses.writes.total() - before)
        self.usage += Usage(
            invocations=1,
            gb_seconds=memory * milliseconds / 1000,
            log_bytes=sum(len(line.encode()) + PER_LINE for line in lines),
        )
        return answer


def _never(messages: object) -> None:
    if messages:
        raise AssertionError("a message of the ack queue was set aside")
