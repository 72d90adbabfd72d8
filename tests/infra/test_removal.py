"""What goes with a stack, and only with a stack whose data is to be destroyed."""

import json
import re
from pathlib import Path

import pytest

from tests.infra.conftest import Synthesized, everything
from tests.infra.iam.conditions import as_list

LEFTOVERS = "Custom::FaninLeftovers"


@pytest.fixture(scope="module")
def destroyed() -> tuple[Synthesized, Synthesized]:
    """The stacks of a service and its pipeline that are to be destroyed."""
    return everything().fanin, everything().jobs


def test_a_stack_whose_data_is_retained_deletes_only_rules_which_keep_its_bus_from_being_deleted(
    fanin, local
):
    # Given what a stack tells the function, unless it is for an emulator, which is thrown away as a whole
    assert local.of_type(LEFTOVERS) == {}
    (told,) = fanin.of_type(LEFTOVERS).values()
    assert told["Bus"] == {"Ref": fanin.id_of(fanin.stack.tracker.bus)}
    assert told["Buckets"] == []
    assert {"QueuePrefix", "DeadLetters"}.isdisjoint(told)
    # And the function may delete nothing else
    deleting = {
        action
        for statement in fanin.statements(fanin.stack.tracker.removal.function.role)
        for action in as_list(statement["Action"])
        if "Delete" in action or "Remove" in action
    }
    assert deleting == {"events:DeleteRule", "events:RemoveTargets"}


def test_a_limit_of_tables_that_goes_back_to_0_is_lifted(fanin, frugal):
    """CloudFormation leaves the limit as it was, and its schema refuses the -1 that lifts it."""
    # Given a deployment with limits that gets the defaults again
    (limited,), (told,) = frugal.of_type(LEFTOVERS).values(), fanin.of_type(LEFTOVERS).values()
    # Then the function is called, since what it is told has changed, with all tables
    assert limited["Unlimited"] == []
    assert told["Unlimited"] == ["MaxWriteRequestUnits", "MaxReadRequestUnits"]
    tables = fanin.stack.tracker.storage.tables.values()
    assert told["Tables"] == [{"Ref": fanin.id_of(table)} for table in tables]


def test_the_documentation_names_the_endpoints_that_the_functions_need_in_a_vpc(destroyed, tokens):
    # Given the services whose actions the roles of functions may use; passing a role is no call, and Lambda
    # itself writes the logs
    service, jobs = destroyed
    policies = [
        *(one for made in (service, tokens) for one in made.of_type("AWS::IAM::Policy").values()),
        *(one for name, one in jobs.of_type("AWS::IAM::Policy").items() if "Clean" in name),
    ]
    needed = {
        {"cloudwatch": "monitoring"}.get(action.partition(":")[0], action.partition(":")[0])
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        for action in as_list(statement["Action"])
    } - {"iam", "logs"}
    # Then the page lists these, and X-Ray for the setting ``tracing``
    page = (Path(__file__).parents[2] / "docs" / "reference" / "settings.md").read_text()
    (sentence,) = re.findall(r"The endpoints are those of (.*?)\. ", page, re.DOTALL)
    assert set(re.findall(r"`([\w-]+)`", sentence)) == needed | {"xray"}


def test_a_tracker_can_do_without_its_pipeline_again(destroyed):
    """CloudFormation does not delete an export that another stack imports."""
    # Given a service with a pipeline, which uses what the service has
    _, jobs = destroyed
    assert "Fn::GetStackOutput" in json.dumps(jobs.resources)
    # Then it imports nothing, so a deployment without the pipeline, or with another ``removal``, is possible
    assert "Fn::ImportValue" not in json.dumps(jobs.resources)


def test_every_bucket_is_emptied_and_what_was_made_at_run_time_is_deleted(destroyed):
    service, jobs = destroyed
    # Given what a stack tells the function
    (told,) = service.of_type(LEFTOVERS).values()
    (more,) = jobs.of_type(LEFTOVERS).values()
    # Then it names every bucket of its stack, the bus, and the queues of buffers by prefix and dead letters
    for made, one in ((service, told), (jobs, more)):
        assert {bucket["Ref"] for bucket in one["Buckets"]} == set(made.of_type("AWS::S3::Bucket"))
    assert told["QueuePrefix"] == "fanin-buffer-"
    assert told["Bus"] == {"Ref": service.id_of(service.stack.tracker.bus)}
    dead_letters = service.id_of(service.stack.tracker.buffers.dead_letters)
    assert told["DeadLetters"] == {"Fn::GetAtt": [dead_letters, "Arn"]}
    # And both stacks call the same function
    removal = service.id_of(service.stack.tracker.removal.function)
    assert told["ServiceToken"] == {"Fn::GetAtt": [removal, "Arn"]}
    assert "Removal" in json.dumps(more["ServiceToken"])


def test_functions_go_before_what_they_could_make_is_deleted_and_permissions_after(destroyed):
    service, jobs = destroyed
    ((leftovers, resource),) = ((n, r) for n, r in service.resources.items() if r["Type"] == LEFTOVERS)
    # Given the order in which CloudFormation deletes: first what depends on others
    removal = service.id_of(service.stack.tracker.removal.function)
    # Then every function but the one that deletes is gone by then
    for name, one in service.resources.items():
        if one["Type"] == "AWS::Lambda::Function" and name != removal:
            assert leftovers in one["DependsOn"], name
    # And the permissions of that one are still there
    for made, after in (
        (service, resource),
        (jobs, next(r for r in jobs.resources.values() if r["Type"] == LEFTOVERS)),
    ):
        policies = [n for n in made.of_type("AWS::IAM::Policy") if "Clean" in n]
        assert policies
        assert set(policies) <= set(after["DependsOn"])


def test_the_application_is_stopped_before_it_is_deleted_and_starts_no_more(destroyed):
    """EMR Serverless deletes an application in the states CREATED and STOPPED only."""
    jobs = destroyed[1]
    ((name, cleaned),) = jobs.of_type(LEFTOVERS).items()
    (application,) = jobs.of_type("AWS::EMRServerless::Application")
    assert cleaned["Application"] == {"Fn::GetAtt": [application, "ApplicationId"]}
    allowed = [
        statement
        for policy in jobs.of_type("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if "emr-serverless:StopApplication" in statement["Action"]
    ]
    assert [one["Resource"] for one in allowed] == [{"Fn::GetAtt": [application, "Arn"]}]
    # What starts jobs goes before
    for kind in ("AWS::Scheduler::Schedule", "AWS::StepFunctions::StateMachine"):
        (starting,) = (one for one in jobs.resources.values() if one["Type"] == kind)
        assert name in starting["DependsOn"]
