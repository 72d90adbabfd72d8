"""The queues of scatters: jobs and replies, of which a bad one spares the others."""

from typing import Any

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.domain.scatter import Recipient, Scatter, Scattered
from fanin.entry.jobs import gather_replies, run_jobs
from fanin.errors import BatchGone
from tests.unit.entry.test_queues import event, failed, message

QUEUES = [f"https://sqs/car-{number}" for number in range(3)]


@pytest.fixture
def services(memory: Memory) -> Services:
    memory.channels.queues.update({queue: [] for queue in QUEUES})
    return Services(memory.ports())


@pytest.fixture
def scattered(services: Services) -> Scattered:
    return services.scatters.start(Scatter("x", [Recipient("", queue) for queue in QUEUES]))


def jobs(memory: Memory) -> dict[str, Any]:
    return event(*memory.jobs.waiting)


def replies(memory: Memory) -> list[dict[str, Any]]:
    items = [memory.channels.queues[queue][0].attributes[names.ITEM_ATTRIBUTE] for queue in QUEUES]
    return [{"replies": [{"item": item, "payload": "ok"}]} for item in items]


class TestJobs:
    def test_a_job_sends_and_is_counted(self, services, memory, scattered, measured):
        # Given a recipient whose queue is gone
        del memory.channels.queues[QUEUES[2]]
        answer = run_jobs(jobs(memory), services.scatters)
        assert failed(answer) == []
        assert [len(memory.channels.queues[queue]) for queue in QUEUES[:2]] == [1, 1]
        assert measured() == {names.METRIC_SENT: [2.0], names.METRIC_UNREACHED: [1.0]}

    def test_a_job_that_cannot_be_read_comes_again_alone(self, services, memory, scattered, caplog):
        records = [message("no job", "bad"), message({"what": 1}, "odd"), *jobs(memory)["Records"]]
        assert failed(run_jobs({"Records": records}, services.scatters)) == ["bad", "odd"]
        assert services.scatters.status(scattered.batch.batch_id).missing == 3
        assert all(memory.channels.queues.values())
        assert [record.message_id for record in caplog.records] == ["bad", "odd"]

    def test_a_job_of_a_scatter_that_is_gone_is_done(
        self, services, memory, scattered, monkeypatch, measured
    ):
        def gone(*_args: Any) -> None:
            raise BatchGone("long ago")

        monkeypatch.setattr(services.scatters, "send", gone)
        assert failed(run_jobs(jobs(memory), services.scatters)) == []
        assert measured() == {}


class TestReplies:
    @pytest.fixture(autouse=True)
    def _sent(self, services: Services, memory: Memory, scattered: Scattered, measured) -> None:
        run_jobs(jobs(memory), services.scatters)
        measured()

    def test_replies_are_gathered_and_a_repeat_is_not_counted(self, services, memory, scattered, measured):
        bodies = replies(memory)
        answer = gather_replies(event(*bodies, bodies[0]), services.scatters)
        assert failed(answer) == []
        assert services.scatters.status(scattered.batch.batch_id).received == 3
        assert sum(measured()[names.METRIC_REPLIES]) == 3

    @pytest.mark.parametrize(
        "poison", ["no reply", {"replies": "all"}, {"replies": [{"item": "nonsense", "payload": 1}]}]
    )
    def test_a_poison_message_comes_back_alone(self, services, memory, scattered, poison):
        bodies = replies(memory)
        answer = gather_replies(event(bodies[0], poison, *bodies[1:]), services.scatters)
        assert failed(answer) == ["m1"]
        assert services.scatters.status(scattered.batch.batch_id).received == 3
