"""The console behind the API: only where the settings ask for it, and with no more rights than it needs."""

from __future__ import annotations

import pytest

from fanin import names
from fanin_cdk.settings import BadSetting, Settings

ROUTES = {f"GET {names.CONSOLE_ROOT}", f"GET {names.CONSOLE_ROOT}/{{proxy+}}"}
FORMS = {route.replace("GET", "POST") for route in ROUTES}


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


@pytest.mark.parametrize(("auth", "kind"), [("iam", "AWS_IAM"), ("jwt", "JWT")])
def test_it_is_behind_the_authorization_of_the_api(synthesize, auth, kind):
    # Given a stack with a console
    jwt = {"jwt_issuer": "https://login.example/", "jwt_audience": "fanin"} if auth == "jwt" else {}
    stack = synthesize(console=True, auth=auth, **jwt)
    # Then its routes take what all routes take, and no forms
    found = routes(stack)
    assert found.keys() >= ROUTES
    assert not found.keys() & FORMS
    assert {found[route]["AuthorizationType"] for route in ROUTES} == {kind}


def test_a_console_without_buttons_can_write_nothing(synthesize):
    allowed = actions(synthesize(console=True))
    written = ("Put", "Update", "Delete", "Write", "Send", "Create", "Purge", "Tag", "Pass")
    mine = {action for action in allowed if not action.startswith(("logs:", "xray:"))}
    assert not {action for action in mine if action.partition(":")[2].startswith(written)}
    assert mine >= {"dynamodb:BatchGetItem", "dynamodb:Query", "s3:GetObject", "sqs:GetQueueAttributes"}
    assert not {action for action in mine if "*" in action}


def test_a_console_with_buttons_may_do_what_the_api_may(synthesize):
    stack = synthesize(console=True, console_write=True)
    assert routes(stack).keys() >= ROUTES | FORMS
    api = stack.statements(stack.stack.tracker.functions["api"].node.find_child("Role"))
    allowed = {str(statement["Action"]) for statement in api}
    function = stack.stack.tracker.functions["console"]
    mine = {str(statement["Action"]) for statement in stack.statements(function.node.find_child("Role"))}
    assert mine == allowed


def test_it_has_the_packages_that_it_needs(synthesize):
    stack = synthesize(console=True)
    function = stack.properties(stack.stack.tracker.functions["console"].function)
    assert len(function["Layers"]) == 3
    variables = function["Environment"]["Variables"]
    assert variables[names.ENV_CONSOLE_WRITE] == "false"
    assert variables[names.ENV_CONSOLE_ORIGINS] == ""
    others = stack.properties(stack.stack.tracker.functions["api"].function)
    assert len(others["Layers"]) == 2


def test_where_browsers_reach_it_is_a_setting(synthesize):
    origins = "http://localhost:8080, https://fanin.example.com"
    stack = synthesize(console=True, console_origins=origins)
    function = stack.properties(stack.stack.tracker.functions["console"].function)
    variables = function["Environment"]["Variables"]
    assert variables[names.ENV_CONSOLE_ORIGINS] == origins.replace(" ", "")


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
