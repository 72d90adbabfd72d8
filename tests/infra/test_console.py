"""The console behind the API: only where the settings ask for it, and with no more rights than it needs."""

import pytest

from fanin import names
from fanin_cdk.settings import BadSetting, Settings
from tests.infra.conftest import Synthesized, everything

ROUTES = {f"GET {names.CONSOLE_ROOT}", f"GET {names.CONSOLE_ROOT}/{{proxy+}}"}
FORMS = {route.replace("GET", "POST") for route in ROUTES}


@pytest.fixture(scope="module")
def buttons() -> Synthesized:
    return everything().fanin


def routes(stack) -> dict[str, dict]:
    found = stack.of_type("AWS::ApiGatewayV2::Route").values()
    return {route["RouteKey"]: route for route in found}


def actions(stack) -> set[str]:
    """What the function of the console may do."""
    function = stack.stack.tracker.functions["console"]
    statements = stack.statements(function.node.find_child("Role"))
    return {
        action
        for statement in statements
        for action in (
            statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        )
    }


def test_without_the_setting_there_is_no_console(fanin):
    assert "console" not in fanin.stack.tracker.functions
    assert not routes(fanin).keys() & (ROUTES | FORMS)
    assert len(fanin.of_type("AWS::Lambda::LayerVersion")) == 2


@pytest.mark.parametrize(("given", "kind"), [("buttons", "AWS_IAM"), ("tokens", "JWT")])
def test_it_is_behind_the_authorization_of_the_api(request, given, kind):
    found = routes(request.getfixturevalue(given))
    assert found.keys() >= ROUTES
    assert {found[route]["AuthorizationType"] for route in found.keys() & (ROUTES | FORMS)} == {kind}


def test_a_console_without_buttons_takes_no_forms_and_can_write_nothing(tokens):
    assert not routes(tokens).keys() & FORMS
    written = ("Put", "Update", "Delete", "Write", "Send", "Create", "Purge", "Tag", "Pass")
    mine = {action for action in actions(tokens) if not action.startswith(("logs:", "xray:"))}
    assert not {action for action in mine if action.partition(":")[2].startswith(written)}
    assert mine >= {"dynamodb:BatchGetItem", "dynamodb:Query", "s3:GetObject", "sqs:GetQueueAttributes"}
    assert not {action for action in mine if "*" in action}


def test_a_console_with_buttons_may_do_what_the_api_may(buttons):
    assert routes(buttons).keys() >= ROUTES | FORMS
    api, mine = (
        {str(statement["Action"]) for statement in buttons.statements(function.node.find_child("Role"))}
        for function in map(buttons.stack.tracker.functions.get, ("api", "console"))
    )
    assert mine == api


def test_it_has_the_packages_that_it_needs_and_knows_where_browsers_reach_it(buttons, tokens):
    for stack, write, origins in (
        (buttons, "true", ""),
        (tokens, "false", "http://localhost:8080,https://fanin.example.com"),
    ):
        function = stack.properties(stack.stack.tracker.functions["console"].function)
        assert len(function["Layers"]) == 3
        variables = function["Environment"]["Variables"]
        assert variables[names.ENV_CONSOLE_WRITE] == write
        assert variables[names.ENV_CONSOLE_ORIGINS] == origins
        others = stack.properties(stack.stack.tracker.functions["api"].function)
        assert len(others["Layers"]) == 2


@pytest.mark.parametrize(
    "settings",
    [
        {"console_write": True},
        {"console_origins": "https://fanin.example.com"},
        {"console": True, "console_origins": "fanin.example.com"},
        {"console": True, "console_origins": "https://fanin.example.com/console"},
        {"console": True, "console_origins": "*"},
        {"console": True, "console_origins": "null"},
    ],
)
def test_settings_of_the_console_that_would_do_nothing_are_refused(settings):
    with pytest.raises(BadSetting, match="console_"):
        Settings(**settings)
