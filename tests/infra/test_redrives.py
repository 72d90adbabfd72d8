"""The worker of redrives, and the queues to which it may send."""

from __future__ import annotations

from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from fanin import names
from fanin.entry.redrives import WORK_MS
from fanin_cdk import FaninTracker, TrackedQueue
from fanin_cdk.redrives import TIMEOUT


def test_lambda_lets_the_chain_of_jobs_go_on(fanin, tracker):
    # Given the worker, whose jobs put the next job on their own queue
    properties = fanin.properties(tracker.functions["redriver"].function)
    # Then Lambda does not stop it after sixteen
    assert properties["RecursiveLoop"] == "Allow"
    # And a job leaves the rest to the next one long before its time is over
    assert properties["Timeout"] == TIMEOUT
    assert WORK_MS * 2 < TIMEOUT * 1_000
    assert fanin.properties(tracker.redrives.jobs.queue)["VisibilityTimeout"] == 6 * TIMEOUT


def test_a_tracked_queue_may_be_sent_to_again_and_to_nothing_else():
    # Given a tracked queue that is not a channel
    stack = Stack(App(), "Mine")
    tracker = FaninTracker(stack, "Fanin")
    queue = TrackedQueue(stack, "Orders", dead_letters_function=tracker.dead_letters.function).queue
    # Then it has the tag for redrives only
    resources = Template.from_stack(stack).find_resources("AWS::SQS::Queue")
    tags = resources[stack.get_logical_id(queue.node.default_child)]["Properties"]["Tags"]
    assert [tag["Key"] for tag in tags] == [names.TRACKED_TAG]
