"""The app of docs/how-to/deployment.md, with its consumer and its producer, tracks a batch."""

import re
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from fanin import Tracker
from fanin.domain.batch import State
from fanin.local import aws, emulator
from fanin.local.aws import api_url
from fanin.local.deploy import deploy
from fanin.local.stack import CHECKOUT, CONTEXT, EMULATOR_HOME
from fanin.local.synth import synthesize
from tests.e2e.deployment import eventually

pytestmark = pytest.mark.soak


def python(page: str) -> list[str]:
    text = (CHECKOUT / page).read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


APP, HANDLER, PRODUCER = python("docs/how-to/deployment.md")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The app, deployed to an emulator that checks signatures and policies: its URL, and the outputs."""
    folder: Path = tmp_path_factory.mktemp("shop")
    (folder / "app.py").write_text(APP)
    (folder / "consumer").mkdir()
    (folder / "consumer" / "handler.py").write_text(HANDLER)
    synthesize(folder / "app.py", folder / "out", inputs=[folder / "app.py"], context=CONTEXT)
    running = emulator.start(folder, emulator.install(EMULATOR_HOME, print), auth=True)
    try:
        yield running.endpoint_url, deploy(folder / "out", running.endpoint_url)
    finally:
        emulator.stop(folder)


def test_a_batch_is_tracked_from_the_producer_to_the_event(shop, monkeypatch):
    # Given the account in which the stack is
    endpoint, outputs = shop
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", aws.REGION)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", aws.ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", aws.SECRET_KEY)
    boto3.setup_default_session()
    # When the producer of the page sends its rows
    scope = {
        "api_url": api_url(endpoint, outputs["ApiUrl"]),
        "rows_url": outputs["RowsUrl"],
        "rows": [{"n": n} for n in range(70)],
    }
    exec(PRODUCER, scope)
    # Then the consumer, which has only its code, handles all of them, and the batch is complete
    tracker: Tracker = scope["tracker"]
    batch_id = scope["batch"].id
    eventually(lambda: tracker.status(batch_id).batch.state is State.COMPLETE)
    assert tracker.status(batch_id, exact=True).done_min == 70
    assert tracker.failures(batch_id).failures == ()
    # And the rule of the app tells of it
    sqs = aws.client("sqs", endpoint)
    (done,) = (url for url in sqs.list_queues()["QueueUrls"] if "Done" in url)
    (message,) = eventually(
        lambda: sqs.receive_message(QueueUrl=done, WaitTimeSeconds=1).get("Messages"), within=30
    )
    assert f'"batch_id": {batch_id}' in message["Body"] or f'"batch_id":{batch_id}' in message["Body"]
