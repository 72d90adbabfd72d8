"""The HTTP API: its routes, who may call them, and what is written about it."""

import json

import pytest

from fanin import names
from fanin.entry.http.table import ROUTES as SERVED
from fanin_cdk.api import COSTLY, ROUTES
from fanin_cdk.settings import BadSetting, Settings


def only(resources):
    (resource,) = resources.values()
    return resource


def test_all_routes_go_to_the_api_function(fanin, tracker):
    routes = fanin.of_type("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"] for route in routes} == {
        "ANY /v1/{proxy+}",
        "ANY /api/v1/{proxy+}",
        "GET /openapi.json",
        "HEAD /openapi.json",
        *(f"{method.value} {path}" for path, methods in COSTLY.items() for method in methods),
    }
    integration = only(fanin.of_type("AWS::ApiGatewayV2::Integration"))
    function = fanin.id_of(tracker.functions["api"].function)
    assert integration["IntegrationUri"] == {"Fn::GetAtt": [function, "Arn"]}
    assert integration["PayloadFormatVersion"] == "2.0"


def test_the_routes_lead_to_the_roots_that_the_code_serves():
    assert f"{names.API_ROOT}/{{proxy+}}" in ROUTES
    assert any(names.CARLYLE_ROOT.startswith(route.removesuffix("{proxy+}")) for route in ROUTES)


@pytest.mark.parametrize(("given", "kind"), [("fanin", "AWS_IAM"), ("tokens", "JWT"), ("local", "NONE")])
def test_every_route_has_the_authorization_of_the_settings(request, given, kind):
    fanin = request.getfixturevalue(given)
    routes = fanin.of_type("AWS::ApiGatewayV2::Route").values()
    assert {route["AuthorizationType"] for route in routes} == {kind}
    authorizers = list(fanin.of_type("AWS::ApiGatewayV2::Authorizer").values())
    assert len(authorizers) == (kind == "JWT")
    for authorizer in authorizers:
        assert authorizer["JwtConfiguration"] == {
            "Issuer": "https://id.example.com/",
            "Audience": ["fanin", "shop"],
        }


@pytest.mark.parametrize(("given", "prefix"), [("fanin", None), ("local", None), ("tokens", "api://fanin/")])
def test_with_tokens_the_functions_know_which_scopes_they_need(request, given, prefix):
    fanin = request.getfixturevalue(given)
    functions = fanin.stack.tracker.functions
    for name in {"api", "console"} & set(functions):
        variables = fanin.properties(functions[name].function)["Environment"]["Variables"]
        assert variables.get(names.ENV_JWT_SCOPE_PREFIX) == prefix


def test_the_only_stage_throttles_and_writes_an_access_log(altered):
    stage = only(altered.of_type("AWS::ApiGatewayV2::Stage"))
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)
    throttle = stage["DefaultRouteSettings"]
    assert (throttle["ThrottlingRateLimit"], throttle["ThrottlingBurstLimit"]) == (7, 9)
    log = stage["AccessLogSettings"]
    group = altered.of_type("AWS::Logs::LogGroup")[log["DestinationArn"]["Fn::GetAtt"][0]]
    assert "/aws/vendedlogs/apis/shop-" in str(group["LogGroupName"])
    assert json.loads(log["Format"])["requestId"] == "$context.requestId"


def test_there_is_no_access_log_if_the_settings_say_so(frugal):
    stage = only(frugal.of_type("AWS::ApiGatewayV2::Stage"))
    assert "AccessLogSettings" not in stage


@pytest.mark.parametrize("given", ["fanin", "tokens", "local"])
def test_the_access_log_has_the_caller_whatever_the_authorization(request, given):
    """These are the variables that HTTP APIs have; claims can be logged one by one only."""
    stage = only(request.getfixturevalue(given).of_type("AWS::ApiGatewayV2::Stage"))
    line = json.loads(stage["AccessLogSettings"]["Format"])
    assert {name: line[name] for name in ("caller", "subject", "client", "sourceIp")} == {
        "caller": "$context.identity.userArn",
        "subject": "$context.authorizer.claims.sub",
        "client": "$context.authorizer.claims.client_id",
        "sourceIp": "$context.identity.sourceIp",
    }


def test_costly_routes_are_served_and_throttled_one_by_one(frugal):
    fanin = frugal
    stage = only(fanin.of_type("AWS::ApiGatewayV2::Stage"))
    limited = stage["RouteSettings"]
    routes = {route["RouteKey"]: name for name, route in fanin.of_type("AWS::ApiGatewayV2::Route").items()}
    # Each is a route of the code, and of API Gateway, which must have it before the stage
    served = {(route.method, route.path) for route in SERVED}
    served |= {("HEAD", path) for method, path in served if method == "GET"}
    assert {tuple(key.split(" ", 1)) for key in limited} <= served
    # A HEAD reads as much as its GET, and would be one of the cheap calls without a route of its own
    assert {key.replace("GET", "HEAD") for key in limited if key.startswith("GET ")} <= limited.keys()
    assert limited.keys() <= routes.keys()
    (stage_id,) = fanin.of_type("AWS::ApiGatewayV2::Stage")
    assert {routes[key] for key in limited} <= set(fanin.resources[stage_id]["DependsOn"])
    assert {(one["ThrottlingRateLimit"], one["ThrottlingBurstLimit"]) for one in limited.values()} == {(3, 4)}
    # "Detailed metrics" of a route are charged as custom metrics are, and nothing here looks at them
    assert not any(one.get("DetailedMetricsEnabled") for one in limited.values())
    # Acknowledgements are not among them
    assert "POST /v1/acks" not in limited


def test_a_costly_route_never_takes_more_than_the_others(altered):
    stage = only(altered.of_type("AWS::ApiGatewayV2::Stage"))
    limits = stage["RouteSettings"]["POST /v1/batches/{batch_id}/verify"]
    assert (limits["ThrottlingRateLimit"], limits["ThrottlingBurstLimit"]) == (7, 9)


def test_without_origins_there_is_no_cors(fanin):
    assert "CorsConfiguration" not in only(fanin.of_type("AWS::ApiGatewayV2::Api"))


def test_preflights_need_no_authorization_and_requests_do(altered):
    cors = only(altered.of_type("AWS::ApiGatewayV2::Api"))["CorsConfiguration"]
    assert cors["AllowOrigins"] == ["https://shop.example.com", "http://localhost:3000"]
    assert "AllowCredentials" not in cors
    assert {"authorization", "content-type", "idempotency-key", "x-amz-date"} <= set(cors["AllowHeaders"])
    assert {"location", "retry-after", "idempotency-replayed"} <= set(cors["ExposeHeaders"])
    kinds = {
        route["RouteKey"]: route["AuthorizationType"]
        for route in altered.of_type("AWS::ApiGatewayV2::Route").values()
    }
    free = {key for key, kind in kinds.items() if kind == "NONE"}
    assert free == {"OPTIONS /v1/{proxy+}", "OPTIONS /api/v1/{proxy+}"}
    # And whoever floods the API with them takes nothing from those
    assert free <= only(altered.of_type("AWS::ApiGatewayV2::Stage"))["RouteSettings"].keys()
    assert {kind for key, kind in kinds.items() if key not in free} == {"AWS_IAM"}


@pytest.mark.parametrize(
    "origins", ["shop.example.com", "https://shop.example.com/", "https://*.example.com", "*, https://a.b"]
)
def test_an_origin_that_no_browser_sends_is_refused(origins):
    with pytest.raises(BadSetting, match="cors_origins"):
        Settings(cors_origins=origins)
