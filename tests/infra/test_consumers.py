"""A function becomes a consumer in one call: what it gets, from where, and which functions are refused."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from fanin import names
from fanin_cdk import FaninTracker, TrackedQueue, UnfitFunction
from tests.infra.conftest import UNBUNDLED, Synthesized

PYTHON_OF_FANIN = lambda_.Runtime.PYTHON_3_14
UNKNOWN = lambda_.Runtime.PYTHON_3_9
IMPORTED = "arn:aws:lambda:eu-west-1:123456789012:{}"


def function(scope: cdk.Stack, name: str, **given: Any) -> lambda_.Function:
    """A function as users write one: no layer, no variable, no permission."""
    return lambda_.Function(
        scope,
        name,
        **{
            "runtime": PYTHON_OF_FANIN,
            "architecture": lambda_.Architecture.ARM_64,
            "handler": "index.handler",
            "code": lambda_.Code.from_inline("def handler(event, context): pass"),
            **given,
        },
    )


def image(scope: cdk.Stack, name: str) -> lambda_.DockerImageFunction:
    repository = ecr.Repository.from_repository_name(scope, f"{name}Images", "images")
    return lambda_.DockerImageFunction(scope, name, code=lambda_.DockerImageCode.from_ecr(repository))


class App:
    """A tracker, queues and consumers, in four stacks; two of them have a queue of the same id."""

    def __init__(self) -> None:
        app = cdk.App(context=UNBUNDLED)
        self.home, self.orders, self.invoices, self.workers = (
            cdk.Stack(app, name) for name in ("home", "orders", "invoices", "workers")
        )
        self.tracker = FaninTracker(self.home, "Fanin")
        self.queue = TrackedQueue(self.orders, "Orders", tracker=self.tracker)
        self.invoiced = TrackedQueue(self.invoices, "Orders", tracker=self.tracker)
        self.consumers: dict[str, Any] = {}

    def consumer(
        self, name: str, made: Any, queue: TrackedQueue | None = None, *, recursive: bool = False
    ) -> None:
        self.consumers[name] = made
        (queue or self.queue).consume(made, recursive=recursive)

    def read(self) -> dict[str, Synthesized]:
        return {
            stack.stack_name: Synthesized(stack)
            for stack in (self.home, self.orders, self.invoices, self.workers)
        }


@pytest.fixture(scope="module")
def app() -> App:
    app = App()
    at_home = function(app.home, "AtHome")
    app.consumer("home", at_home)
    app.invoiced.consume(at_home)
    for stack in (app.orders, app.invoices):
        app.tracker.removal.clean(Construct(stack, "Jobs"), [])
    app.consumer("beside the queue", function(app.orders, "Beside"))
    app.consumer("away", function(app.workers, "Away"), recursive=True)
    app.consumer("of the work queue", function(app.workers, "OfWork"), app.tracker.work)
    app.consumer("old", function(app.workers, "Old", runtime=lambda_.Runtime.PYTHON_3_12))
    app.consumer("intel", function(app.workers, "Intel", architecture=lambda_.Architecture.X86_64))
    app.consumer("old at home", function(app.home, "OldAtHome", runtime=lambda_.Runtime.PYTHON_3_11))
    app.consumer("node", function(app.workers, "Node", runtime=lambda_.Runtime.NODEJS_22_X))
    app.consumer("image", image(app.workers, "Image"))
    aliased = function(app.workers, "Aliased")
    app.consumers["aliased"] = aliased
    app.consumer(
        "alias", lambda_.Alias(app.workers, "Live", alias_name="live", version=aliased.current_version)
    )
    twice = function(app.workers, "Twice", layers=app.tracker.layers.fitting(app.workers))
    app.consumer("twice", twice)
    app.tracker.work.consume(twice)
    app.consumers["producer"] = function(app.workers, "Producer")
    app.tracker.equip(app.consumers["producer"])
    imported = lambda_.Function.from_function_attributes(
        app.workers,
        "Imported",
        function_arn=IMPORTED.format("function:imported"),
        role=iam.Role.from_role_arn(app.workers, "Role", "arn:aws:iam::123456789012:role/imported"),
    )
    app.consumer("imported", imported)
    return app


@pytest.fixture(scope="module")
def stacks(app: App) -> dict[str, Synthesized]:
    return app.read()


def properties(app: App, stacks: dict[str, Synthesized], name: str) -> dict[str, Any]:
    made = app.consumers[name]
    return stacks[cdk.Stack.of(made).stack_name].properties(made)


def layers(app: App, stacks: dict[str, Synthesized], name: str) -> list[dict[str, Any]]:
    """The layers of a consumer, each of which has to be in the consumer's own stack."""
    stack = stacks[cdk.Stack.of(app.consumers[name]).stack_name]
    references = properties(app, stacks, name).get("Layers", [])
    assert all(set(reference) == {"Ref"} for reference in references), references
    return [stack.resources[reference["Ref"]]["Properties"] for reference in references]


CONSUMERS = ("home", "beside the queue", "away", "of the work queue", "old", "intel", "old at home", "twice")


def actions(stacks: dict[str, Synthesized], made: lambda_.Function) -> set[str]:
    """What the role of a function may do, by the policies of all stacks."""
    stack = stacks[cdk.Stack.of(made).stack_name]
    role = stack.id_of(made.role)
    return {
        action
        for one in stacks.values()
        for kind in ("AWS::IAM::Policy", "AWS::SQS::QueuePolicy")
        for policy in one.of_type(kind).values()
        for statement in policy["PolicyDocument"]["Statement"]
        if any(role in json.dumps(who) for who in (policy.get("Roles"), statement.get("Principal")))
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


@pytest.mark.parametrize("name", [*CONSUMERS, "node", "image", "aliased"])
def test_a_consumer_knows_its_tracker_and_may_receive_and_acknowledge(app, stacks, name):
    # Given a consumer without anything of its own
    variables = properties(app, stacks, name)["Environment"]["Variables"]
    assert set(app.tracker.environment) <= set(variables)
    # Then the names are those of the tracker, from its stack or from another one
    assert set(variables[names.ENV_WORDS_TABLE]) == ({"Ref"} if "home" in name else {"Fn::ImportValue"})
    # And a consumer in another language, which has nothing but the API and the ack queue, knows the API; the
    # library of the others goes on working on the tables
    assert (names.ENV_API_URL in variables) == (name == "node")
    # And its role may do what it has to
    receive = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
    assert receive | {"dynamodb:UpdateItem", "sqs:SendMessage"} <= actions(stacks, app.consumers[name])


@pytest.mark.parametrize("name", [*CONSUMERS, "node", "image"])
def test_a_consumer_gets_the_layers_that_fit_it_from_its_own_stack(app, stacks, name):
    # Given what does not run Python, which gets no layer
    made, found = app.consumers[name], layers(app, stacks, name)
    if name not in CONSUMERS:
        assert found == []
        return
    # Then all others have fanin and the third-party packages, for their Python and their processor
    package, packages = found
    assert made.runtime.name in package["CompatibleRuntimes"]
    assert "CompatibleArchitectures" not in package
    assert packages["CompatibleRuntimes"] == [made.runtime.name]
    assert packages["CompatibleArchitectures"] == [made.architecture.name]


def sources(stacks: dict[str, Synthesized]) -> list[tuple[str, str, dict[str, Any]]]:
    """Stack, function and properties of the event sources that feed functions of users."""
    return [
        (name, json.dumps(source["FunctionName"]), source)
        for name, stack in stacks.items()
        for source in stack.of_type("AWS::Lambda::EventSourceMapping").values()
    ]


@pytest.mark.parametrize(
    ("name", "where_fed"),
    [
        ("home", ["orders", "invoices"]),
        ("beside the queue", ["orders"]),
        ("away", ["workers"]),
        ("of the work queue", ["workers"]),
        ("alias", ["workers"]),
        ("twice", ["workers", "workers"]),
    ],
)
def test_the_queue_feeds_the_consumer(app, stacks, name, where_fed):
    # Given the name of the function as other stacks see it
    made = app.consumers["aliased" if name == "alias" else name]
    logical = stacks[cdk.Stack.of(made).stack_name].id_of(app.consumers[name])
    # Then its event sources lie where no circle arises, and tell failed messages from good ones
    feeding = [(where, source) for where, fed, source in sources(stacks) if logical in fed]
    assert [where for where, _ in feeding] == where_fed
    assert all(source["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for _, source in feeding)


def test_a_source_waits_for_the_permission_to_receive_that_lies_beside_it(app, stacks):
    # Given the consumer of the tracker's stack: its permission lies in the stack of the queue
    logical = stacks["home"].id_of(app.consumers["home"])
    (source,) = (
        one
        for one in stacks["orders"].resources.values()
        if one["Type"] == "AWS::Lambda::EventSourceMapping" and logical in json.dumps(one)
    )
    # Then Lambda is not asked to receive before the function may
    (policy,) = (stacks["orders"].resources[name] for name in source["DependsOn"])
    assert policy["Type"] == "AWS::IAM::Policy"
    assert "AtHome" in json.dumps(policy["Properties"]["Roles"])


def test_stacks_depend_in_one_direction(app, stacks):
    assert stacks
    dependencies = {
        stack.stack_name: {other.stack_name for other in stack.dependencies}
        for stack in (app.home, app.orders, app.invoices, app.workers)
    }
    assert dependencies == {
        "home": set(),
        "orders": {"home"},
        "invoices": {"home"},
        "workers": {"home", "orders"},
    }


def inline(stacks: dict[str, Synthesized]) -> list[tuple[str, str, str]]:
    """Role, name and document of the policies of all roles; a role is named as its own stack names it."""
    exports = {
        output["Export"]["Name"]: output["Value"]
        for stack in stacks.values()
        for output in stack.template.to_json().get("Outputs", {}).values()
        if "Export" in output
    }
    return [
        (json.dumps(exports[role["Fn::ImportValue"]] if "Fn::ImportValue" in role else role), *rest)
        for stack in stacks.values()
        for policy in stack.of_type("AWS::IAM::Policy").values()
        for rest in [(policy["PolicyName"], json.dumps(policy["PolicyDocument"]))]
        for role in policy["Roles"]
    ]


def test_no_stack_replaces_what_another_one_allows_a_role(stacks):
    """IAM replaces a policy of a role by another one of the same name."""
    # Given two stacks with a queue of the same id each, which both let the function at home receive, and
    # both have the tracker clean up
    found = [(role, name) for role, name, _ in inline(stacks)]
    assert len([name for _, name in found if "Clean" in name]) == 3
    # Then no two policies of one role have the same name
    assert len(found) == len(set(found))


def test_the_roles_of_a_tracker_do_not_grow_with_its_queues(app, stacks):
    """The inline policies of a role have 10,240 characters together."""
    # Given the function for dead letters of queues in other stacks
    role = stacks["home"].id_of(app.tracker.dead_letters.function.role)
    # Then no other stack gives it a policy
    for name in ("orders", "invoices", "workers"):
        assert role not in json.dumps(stacks[name].of_type("AWS::IAM::Policy"))


@pytest.mark.soak
def test_five_hundred_queues_fit_a_tracker():
    app = cdk.App(context=UNBUNDLED)
    home = cdk.Stack(app, "home")
    tracker = FaninTracker(home, "Fanin")
    # Given as many stacks as 500 queues take, since a stack has at most 500 resources
    beside = [cdk.Stack(app, f"shop{at}") for at in range(6)]
    for at in range(500):
        TrackedQueue(beside[at % len(beside)], f"Orders{at}", tracker=tracker)
    # Then all are synthesized, and the policies of each role are within what IAM takes
    stacks = {stack.stack_name: Synthesized(stack) for stack in (home, *beside)}
    assert sum(len(stacks[one.stack_name].of_type("AWS::SQS::Queue")) for one in beside) == 1_000
    sizes: dict[str, int] = {}
    for role, _, document in inline(stacks):
        sizes[role] = sizes.get(role, 0) + len(document)
    assert max(sizes.values()) < 10_240


def test_no_stack_imports_a_layer(stacks):
    # A new version of a layer has another ARN, and CloudFormation does not change what others import
    exported = [output for output in stacks["home"].template.to_json()["Outputs"] if "Layer" in output]
    assert exported == []


@pytest.fixture
def tracker(app: App, stacks: dict[str, Synthesized]) -> FaninTracker:
    """That of the app, whose templates are known already, so that more stacks do no harm."""
    return app.tracker


@pytest.fixture
def stack(tracker, request) -> cdk.Stack:
    return cdk.Stack(tracker.node.root, request.node.originalname.replace("_", "-")[:100] + str(id(request)))


@pytest.fixture
def queue(tracker, stack) -> TrackedQueue:
    return TrackedQueue(stack, "Orders", tracker=tracker)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"runtime": lambda_.Runtime.PYTHON_3_10},
            r"Consumer runs on python3\.10, and fanin's layers are for python3\.11, .*; choose one of these",
        ),
        ({"runtime": UNKNOWN}, r"Consumer runs on python3\.9,"),
        (
            {"architecture": lambda_.Architecture.custom("riscv64", "linux/riscv64")},
            r"Consumer runs on riscv64, and fanin's layers are for arm64, x86_64; choose one of these",
        ),
        (
            {"timeout": cdk.Duration.seconds(200)},
            r"Consumer may run for 200 s, but \S+/Orders hides its messages for 180 s, .*\.seconds\(1200\)",
        ),
    ],
    ids=["old", "unknown", "processor", "timeout"],
)
def test_a_function_that_does_not_fit_is_refused(stack, queue, given, message):
    consumer = function(stack, "Consumer", **given)
    with pytest.raises(UnfitFunction, match=message):
        queue.consume(consumer)


def test_a_function_belongs_to_one_tracker(stack, queue, tracker):
    # Given a consumer, and a queue of another tracker
    consumer = function(stack, "Consumer")
    queue.consume(consumer)
    other = FaninTracker(stack, "Other")
    # Then it cannot work for both, since its variables name one
    with pytest.raises(
        UnfitFunction, match=r"Consumer uses the tracker home/Fanin, and cannot use \S+/Other"
    ):
        TrackedQueue(stack, "OfOther", tracker=other).consume(consumer)


def test_an_imported_function_must_bring_its_role(stack, queue):
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:consumer"
    with pytest.raises(UnfitFunction, match="import the function with its role"):
        queue.consume(lambda_.Function.from_function_arn(stack, "Consumer", arn))


def test_an_imported_function_gets_permissions_and_the_source(stacks):
    # Given a consumer of another app, imported with its role
    resources = stacks["workers"].resources
    # Then its role has the permissions, and the source waits for them
    policies = {
        name
        for name, one in resources.items()
        if one["Type"] == "AWS::IAM::Policy" and one["Properties"]["Roles"] == ["imported"]
    }
    assert "sqs:ReceiveMessage" in json.dumps([resources[name] for name in policies])
    (source,) = (
        one
        for one in resources.values()
        if one["Type"] == "AWS::Lambda::EventSourceMapping"
        and one["Properties"]["FunctionName"] == "imported"
    )
    assert policies & set(source["DependsOn"])


def test_a_consumer_may_feed_its_own_queue_if_it_says_so(app, stacks):
    """Lambda stops what it takes for an endless loop after 16 rounds."""
    allowing = [
        name
        for name, stack in stacks.items()
        for one in stack.of_type("AWS::Lambda::Function").values()
        if one.get("RecursiveLoop") == "Allow" and "Fanin" not in json.dumps(one["Role"])
    ]
    assert allowing == ["workers"]
    assert properties(app, stacks, "away")["RecursiveLoop"] == "Allow"


def test_a_function_of_another_app_cannot_be_made_recursive_here(stack, queue):
    role = iam.Role.from_role_arn(stack, "Role", "arn:aws:iam::123456789012:role/imported")
    arn = IMPORTED.format("function:imported")
    imported = lambda_.Function.from_function_attributes(stack, "Imported", function_arn=arn, role=role)
    with pytest.raises(UnfitFunction, match="set RecursiveLoop to Allow where it is defined"):
        queue.consume(imported, recursive=True)


@pytest.mark.parametrize("both", [True, False])
def test_a_queue_needs_a_tracker_or_a_function_for_dead_letters(stack, tracker, *, both):
    given = {"tracker": tracker, "dead_letters_function": tracker.dead_letters.function} if both else {}
    with pytest.raises(ValueError, match=f"it got {'both' if both else 'neither'}"):
        TrackedQueue(stack, "Lost", **given)


def test_a_large_batch_needs_a_window(stack, queue):
    with pytest.raises(ValueError, match="batch_size is 11, and more than 10 need max_batching_window"):
        queue.consume(function(stack, "Consumer"), batch_size=11)


def test_the_visibility_timeout_covers_the_window(stack, queue):
    # Given a queue that hides its messages for 180 s
    given = {"batch_size": 100, "max_batching_window": cdk.Duration.seconds(150)}
    # When a function may hold them for 150 s, and then run for 31 s
    slow = function(stack, "Slow", timeout=cdk.Duration.seconds(31))
    with pytest.raises(UnfitFunction, match=r"holds them for up to 150 s before; .*\.seconds\(336\)"):
        queue.consume(slow, **given)
    # Then one that ends in time is accepted
    queue.consume(function(stack, "Fast", timeout=cdk.Duration.seconds(30)), **given)


def test_a_queue_without_a_tracker_cannot_consume(stack, tracker):
    queue = TrackedQueue(stack, "Lost", dead_letters_function=tracker.dead_letters.function)
    with pytest.raises(ValueError, match="does not know its tracker"):
        queue.consume(function(stack, "Consumer"))


def test_a_producer_can_be_equipped_alone(app, stacks):
    # Given a function that got what the library needs, and nothing else
    made = app.consumers["producer"]
    # Then it has layers and variables, and may still do nothing
    assert len(layers(app, stacks, "producer")) == 2
    assert set(app.tracker.environment) <= set(
        properties(app, stacks, "producer")["Environment"]["Variables"]
    )
    assert actions(stacks, made) == set()
