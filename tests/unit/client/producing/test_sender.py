"""What reaches the queue, in which requests, and what happens when the queue does not accept it."""

import threading
import time
from itertools import islice

import pytest
from botocore.exceptions import EndpointConnectionError

from fanin import Message
from fanin.adapters.backoff import Backoff
from fanin.client.producing.sender import Sender, SentNotes
from fanin.domain import ids
from fanin.domain.diagnosis import SentItems
from fanin.errors import AccessDenied, RequestTooLarge, ServiceUnavailable, Throttled
from tests.unit.client.conftest import raising, received, refusal
from tests.unit.client.producing.conftest import partly


def send(faulty, queue, *messages, **options):
    """Send messages of items 1:g:0, 1:g:1 …, and return the entries that the queue got."""
    block = [(f"1:g:{n}", message) for n, message in enumerate(messages)]
    list(Sender(faulty, queue, **{"group_id": "batch", **options}).send([block]))
    return [entry for _, request in faulty.requests for entry in request["Entries"]]


class TestRequests:
    def test_bodies_attributes_and_delay(self, tracker, sqs, queue):
        messages = [
            {"name": "Zürich", "n": 1},
            Message("late", delay=900),
            Message("with attributes", attributes={"n": 1.5, "raw": b"\x00", "kind": "mine"}),
        ]
        with tracker.batch() as batch:
            batch.send(queue, messages, attributes={"kind": "all", "source": "test"})
        found = {message["Body"]: message["MessageAttributes"] for message in received(sqs, queue)}
        assert found.keys() == {'{"name": "Zürich", "n": 1}', "with attributes"}
        attributes = found["with attributes"]
        assert attributes["n"] == {"StringValue": "1.5", "DataType": "Number"}
        assert attributes["raw"] == {"BinaryValue": b"\x00", "DataType": "Binary"}
        assert attributes["kind"]["StringValue"] == "mine"
        assert attributes["source"]["StringValue"] == "test"

    def test_requests_stay_within_their_bytes(self, faulty, queue):
        # Given: three messages of which two fill a request
        send(faulty, queue, *[Message("ü" * 600)] * 3, request_bytes=3_000)
        assert sorted(len(request["Entries"]) for _, request in faulty.requests) == [1, 2]


class TestFifo:
    def test_order_holds_and_an_item_is_sent_once(self, fifo_queue, faulty):
        entries = send(faulty, fifo_queue, *(Message(str(n)) for n in range(35)), workers=8)
        assert [entry["MessageBody"] for entry in entries] == [str(n) for n in range(35)]
        assert {entry["MessageGroupId"] for entry in entries} == {"batch"}
        assert [entry["MessageDeduplicationId"] for entry in entries] == [f"1:g:{n}" for n in range(35)]

    @pytest.mark.parametrize(("name", "most"), [("fifo_queue", 1), ("queue", 4)])
    def test_requests_overlap_only_where_order_does_not_matter(self, request, tracker, faulty, name, most):
        # Given: a queue that answers when as many requests are there as may be
        queue_url, running, seen = request.getfixturevalue(name), set(), []
        all_there = threading.Barrier(most)

        def slow(real, arguments):
            running.add(threading.get_ident())
            seen.append(len(running))
            all_there.wait(timeout=60)
            time.sleep(0.005)  # in which one more would be seen
            running.discard(threading.get_ident())
            return real(**arguments)

        faulty.instead("send_message_batch", slow)
        with tracker.batch() as batch:
            batch.send(queue_url, map(str, range(40)), workers=4)
        assert max(seen) == most
        groups = {
            entry.get("MessageGroupId") for _, sent in faulty.requests for entry in sent.get("Entries", ())
        }
        assert groups - {None} == ({str(batch.id)} if name == "fifo_queue" else set())

    def test_groups_and_deduplication_may_be_the_callers(self, faulty, fifo_queue):
        [entry] = send(faulty, fifo_queue, Message("x", group_id="g", dedup_id="d"))
        assert (entry["MessageGroupId"], entry["MessageDeduplicationId"]) == ("g", "d")


class TestFailures:
    def test_only_entries_that_failed_are_sent_again(self, tracker, faulty, sqs, queue):
        # Given: a queue that refuses each message the first time
        seen: set[str] = set()

        def once(entry):
            body = entry["MessageBody"]
            return not (body in seen or seen.add(body)) and int(body) % 3 == 0

        faulty.instead("send_message_batch", partly(once))
        with tracker.batch() as batch:
            assert batch.send(queue, map(str, range(30))) == 30
        bodies = [message["Body"] for message in received(sqs, queue)]
        assert sorted(bodies, key=int) == [str(n) for n in range(30)]

    @pytest.mark.parametrize("fault", [True, False])
    def test_a_strict_sender_gives_up_only_what_can_never_be_sent(self, faulty, queue, fault):
        # Given: a queue that never takes one message, for its own fault or for the queue's
        faulty.instead(
            "send_message_batch", partly(lambda entry: entry["MessageBody"] == "3", sender_fault=fault)
        )
        sender = Sender(
            faulty, queue, group_id="g", strict=True, backoff=Backoff(tries=2, sleep=lambda _: None)
        )
        block = [(f"item {n}", Message(str(n))) for n in range(5)]
        # When, then
        if fault:
            assert list(sender.send([block])) == [(4, {"item 3": "InternalError: sorry"})]
        else:
            with pytest.raises(Throttled, match="InternalError: sorry"):
                list(sender.send([block]))

    def test_a_message_for_which_sqs_refuses_a_request_harms_no_other(self, faulty, queue):
        # Given a queue that refuses a request for one of its messages, and is busy once while each goes alone
        busy = iter([True])

        def answer(real, arguments):
            bodies = [entry["MessageBody"] for entry in arguments["Entries"]]
            if "3" in bodies:
                raise refusal("InvalidMessageContents", text="Invalid characters.")
            if len(bodies) == 1 and next(busy, False):
                raise refusal("ThrottlingException")
            return real(**arguments)

        faulty.instead("send_message_batch", answer)
        sender = Sender(faulty, queue, group_id="g", backoff=Backoff(sleep=lambda _: None))
        block = [(f"item {n}", Message(str(n))) for n in range(5)]
        assert list(sender.send([block])) == [(4, {"item 3": "InvalidMessageContents: Invalid characters"})]

    def test_a_lost_answer_is_repeated_whole(self, tracker, faulty, sqs, fifo_queue):
        # Given: the first answer gets lost after the queue took the messages
        lost = threading.Event()

        def answer(real, arguments):
            result = real(**arguments)
            if not lost.is_set():
                lost.set()
                raise EndpointConnectionError(endpoint_url="https://sqs")
            return result

        faulty.instead("send_message_batch", answer)
        with tracker.batch() as batch:
            batch.send(fifo_queue, ["a", "b"])
        # Then: FIFO drops the repeat by the item id
        assert [message["Body"] for message in received(sqs, fifo_queue)] == ["a", "b"]

    def test_a_queue_that_may_not_be_used_ends_the_send_at_once(self, tracker, faulty, queue):
        faulty.instead("send_message_batch", raising(refusal("AccessDenied", 403)))
        with pytest.raises(AccessDenied, match="work"), tracker.batch() as batch:
            batch.send(queue, ["x"])
        assert [name for name, _ in faulty.requests].count("send_message_batch") == 1

    def test_a_stream_without_end_is_not_read_ahead(self, tracker, faulty, queue):
        read = 0

        def rows():
            nonlocal read
            while True:
                read += 1
                yield [(str(read), Message("x"))]

        sender = Sender(faulty, queue, group_id="g", workers=2)
        answers = list(islice(sender.send(rows()), 5))
        assert answers == [(1, {})] * 5
        assert read < 20


def test_a_message_is_too_large_by_its_attributes_too(faulty, queue):
    # Given room for 200 bytes, a body of 100, and an attribute of as many
    message = Message("x" * 100, attributes={"more": "y" * 100})
    said = r"item 1:g:0 has 231 bytes, but a request may have 200; .* S3"
    with pytest.raises(RequestTooLarge, match=said):
        send(faulty, queue, message, request_bytes=200)
    assert faulty.requests == []


def test_a_group_is_named_on_a_standard_queue_only_if_the_message_names_one(faulty, queue):
    plain, grouped = send(faulty, queue, Message("a"), Message("b", group_id="tenant-7"))
    assert "MessageGroupId" not in plain
    assert grouped["MessageGroupId"] == "tenant-7"
    assert "MessageDeduplicationId" not in grouped


def test_the_item_id_is_never_overwritten_by_an_attribute(faulty, queue):
    (entry,) = send(
        faulty,
        queue,
        Message("a", attributes={"fanin-item": "mine"}),
        attributes={"fanin-item": "everybody's"},
    )
    assert entry["MessageAttributes"]["fanin-item"]["StringValue"] == "1:g:0"


def test_a_queue_that_does_not_answer_is_asked_six_times_and_no_wait_is_longer_than_20_s(
    faulty, queue, longest_waits
):
    faulty.instead("send_message_batch", raising(EndpointConnectionError(endpoint_url=queue)))
    block = [("1:g:0", Message("a"))]

    with pytest.raises(ServiceUnavailable):
        list(Sender(faulty, queue, group_id="g").send([block]))
    assert (len(faulty.requests), longest_waits) == (6, [0.1, 0.2, 0.4, 0.8, 1.6])

    longest_waits.clear()
    with pytest.raises(ServiceUnavailable):
        list(Sender(faulty, queue, group_id="g", backoff=Backoff(tries=10, base=0.1, cap=20)).send([block]))
    assert longest_waits[5:] == [3.2, 6.4, 12.8, 20]


QUEUE = "https://sqs/1/work"


def prefix(first: int, size: int) -> str:
    return ids.issue(7, first, size, b"s" * 16).prefix


REFUSED = f"{prefix(100, 10)}:4"


@pytest.mark.parametrize(
    ("blocks", "answers", "noted"),
    [
        pytest.param([(0, 15, 15)], [10, 4], [], id="a block that is not answered whole is not noted"),
        pytest.param([(0, 15, 15)], [10, 4, 1], [(0, 15)], id="a block is noted once it is"),
        pytest.param(
            [(0, 10, 10), (10, 10, 10)], [10, 10], [(0, 10), (0, 20)], id="blocks in a row extend one note"
        ),
        pytest.param(
            [(0, 10, 10), (50, 10, 10)],
            [20],
            [(0, 10), (50, 60)],
            id="a gap where another producer added begins a new one",
        ),
        pytest.param(
            [(0, 10, 0), (10, 10, 3)], [3], [(0, 10), (0, 20)], id="items that were done before count as sent"
        ),
        pytest.param(
            [(100, 10, 10)], [10], [(100, 104), (105, 110)], id="a message that was refused was not sent"
        ),
    ],
)
def test_blocks_are_noted(blocks, answers, noted):
    # Given blocks: the first ordinal, items, and messages that are sent for them
    found: list[tuple[int, SentItems]] = []
    notes = SentNotes(7, QUEUE, lambda batch_id, sent: found.append((batch_id, sent)))
    for first, size, messages in blocks:
        notes.begin(first, first + size, messages)
    # When the queue answers for so many messages, one after the other
    for messages in answers:
        notes.answered(messages, {REFUSED} if blocks[0][0] == 100 else {})
    assert found == [(7, SentItems(QUEUE, start, stop)) for start, stop in noted]


def test_a_fair_sender_names_the_batch_as_the_group_of_messages_that_name_none(faulty, queue):
    plain, grouped = send(faulty, queue, Message("a"), Message("b", group_id="tenant-7"), fair=True)
    assert (plain["MessageGroupId"], grouped["MessageGroupId"]) == ("batch", "tenant-7")
    assert "MessageDeduplicationId" not in plain
