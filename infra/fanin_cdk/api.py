"""The HTTP API: all routes lead to one function, behind the authorization that the settings choose."""

import json
from collections.abc import Collection
from typing import cast

from aws_cdk import Duration, Stack
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_iam as iam
from constructs import Construct

from fanin import names
from fanin.domain.access import AccessGroup
from fanin_cdk.findings import accept
from fanin_cdk.functions import Function, log_group
from fanin_cdk.permissions import allow
from fanin_cdk.route_paths import CUT, paths_of
from fanin_cdk.settings import Settings

ROUTES = {
    "/v1/{proxy+}": [apigw.HttpMethod.ANY],
    "/api/v1/{proxy+}": [apigw.HttpMethod.ANY],
    "/openapi.json": [apigw.HttpMethod.GET, apigw.HttpMethod.HEAD],
}
_READ = [apigw.HttpMethod.GET, apigw.HttpMethod.HEAD]
COSTLY = {
    "/v1/batches": [apigw.HttpMethod.DELETE],
    "/v1/batches/{batch_id}/missing": _READ,
    "/v1/batches/{batch_id}/failures": _READ,
    "/v1/batches/{batch_id}/errors": _READ,
    "/v1/batches/{batch_id}/diagnosis": _READ,
    "/v1/batches/{batch_id}/verify": [apigw.HttpMethod.POST],
    "/v1/batches/{batch_id}/release": [apigw.HttpMethod.POST],
    "/v1/batches/{batch_id}/redrive": [apigw.HttpMethod.POST],
    "/v1/batches/{batch_id}/targets/redeliver": [apigw.HttpMethod.POST],
    "/v1/scatters/{batch_id}": _READ,
    "/v1/scatters/{batch_id}/missing": _READ,
    "/v1/scatters/{batch_id}/replies": _READ,
    "/api/v1/batch/exact/open": [apigw.HttpMethod.DELETE],
    "/api/v1/batch/exact/closed": [apigw.HttpMethod.DELETE],
}
"""Routes of which a request may read hundreds of rows; API Gateway knows each, and throttles each.

A HEAD reads as much as its GET, so it is throttled too.
"""

_BUTTON = f"POST{names.CONSOLE_ROOT}/{{}}/*/actions/{{}}"
CONSOLE = {
    AccessGroup.READ: (f"GET{names.CONSOLE_ROOT}", f"GET{names.CONSOLE_ROOT}/*"),
    AccessGroup.OPERATE: (
        *(
            _BUTTON.format("batches", action)
            for action in ("close", "redrive", "release", "verify", "redeliver", "limits", "cancel")
        ),
        _BUTTON.format("directory", "deregister"),
    ),
    AccessGroup.ADMINISTER: (
        _BUTTON.format("batches", "remove"),
        _BUTTON.format("buffers", "limit"),
        _BUTTON.format("routes", "delete"),
    ),
}
"""Method and path of the console's pages and buttons, by the group of the call that a button makes."""

ACCESS_LOG = {
    "requestId": "$context.requestId",
    "time": "$context.requestTime",
    "sourceIp": "$context.identity.sourceIp",
    "caller": "$context.identity.userArn",  # with auth=iam
    "subject": "$context.authorizer.claims.sub",  # with auth=jwt; what is not known is "-"
    "client": "$context.authorizer.claims.client_id",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "route": "$context.routeKey",
    "status": "$context.status",
    "latency": "$context.responseLatency",
    "integrationError": "$context.integrationErrorMessage",
    "bytes": "$context.responseLength",
}


class Api(Construct):
    """The service over HTTPS.

    Args:
        scope: parent construct.
        id: its id there.
        settings: settings of the deployment; ``auth``, ``access_log`` and the throttling limits apply here.
        function: the function that serves all routes.

    Attributes:
        api: the HTTP API.
        stage: its only stage, ``$default``, which is at the root of the URL.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings, function: Function) -> None:
        super().__init__(scope, id)
        self._settings = settings
        self.api = apigw.HttpApi(
            self,
            "Api",
            api_name=settings.prefix,
            description="fanin: know when a fan-out is finished",
            create_default_stage=False,
            default_authorizer=_authorizer(settings),
            cors_preflight=_cors(settings),
        )
        if settings.auth == "none":
            accept(self.api, "APIG4", "the settings ask for an API without authorization")
        integration = integrations.HttpLambdaIntegration("Integration", function.function)
        for path, methods in ROUTES.items():
            self.api.add_routes(path=path, methods=methods, integration=integration)
        preflights = self._let_preflights_in(integration) if settings.cors_origins else []
        costly = [
            route
            for path, methods in COSTLY.items()
            for route in self.api.add_routes(path=path, methods=methods, integration=integration)
        ]
        self.stage = apigw.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigw.ThrottleSettings(
                rate_limit=settings.api_throttle_rate, burst_limit=settings.api_throttle_burst
            ),
        )
        self._throttle([*costly, *preflights], settings)
        if not settings.access_log:
            accept(self.stage, "APIG1", "the settings ask for an API without an access log")
            return
        access_log = log_group(self, "AccessLog", settings=settings, vended=f"apis/{settings.prefix}")
        cfn_stage = cast("apigw.CfnStage", self.stage.node.default_child)
        cfn_stage.access_log_settings = apigw.CfnStage.AccessLogSettingsProperty(
            destination_arn=access_log.log_group_arn, format=json.dumps(ACCESS_LOG, separators=(",", ":"))
        )

    def _let_preflights_in(self, integration: integrations.HttpLambdaIntegration) -> list[apigw.HttpRoute]:
        """Routes for OPTIONS without authorization: a browser sends no credentials with a preflight.

        API Gateway answers preflights itself, but a route for any method would ask for authorization first.
        """
        routes = [
            route
            for path, methods in ROUTES.items()
            if apigw.HttpMethod.ANY in methods
            for route in self.api.add_routes(
                path=path,
                methods=[apigw.HttpMethod.OPTIONS],
                integration=integration,
                authorizer=apigw.HttpNoneAuthorizer(),
            )
        ]
        for route in routes:
            accept(route, "APIG4", "browsers send preflights without credentials")
        return routes

    def _throttle(self, routes: list[apigw.HttpRoute], settings: Settings) -> None:
        """Accept fewer requests to some routes than to the others, whose rate they cannot use up either.

        Everybody may send preflights, so these must not take what callers with credentials need.
        """
        limits = {
            "ThrottlingRateLimit": min(settings.api_costly_rate, settings.api_throttle_rate),
            "ThrottlingBurstLimit": min(settings.api_costly_burst, settings.api_throttle_burst),
        }
        stage = cast("apigw.CfnStage", self.stage.node.default_child)
        stage.route_settings = {
            cast("apigw.CfnRoute", route.node.default_child).route_key: limits for route in routes
        }
        self.stage.node.add_dependency(
            *routes
        )  # a stage is refused that names a route which is not there yet

    def serve_console(self, function: Function, *, write: bool) -> None:
        """Let a function serve the console below ``/console``, behind the authorization of all routes.

        Args:
            function: the function.
            write: whether its pages send forms.
        """
        integration = integrations.HttpLambdaIntegration("Console", function.function)
        methods = [apigw.HttpMethod.GET, *([apigw.HttpMethod.POST] if write else [])]
        for path in (names.CONSOLE_ROOT, f"{names.CONSOLE_ROOT}/{{proxy+}}"):
            self.api.add_routes(path=path, methods=methods, integration=integration)

    @property
    def url(self) -> str:
        """URL of the API, without a slash at the end."""
        return self.api.api_endpoint

    def grant_invoke(self, grantee: iam.IGrantable, *routes: str) -> None:
        """Allow a role to call the API (``execute-api:Invoke``); this matters with ``auth=iam`` only.

        Args:
            grantee: the role, or a function with one.
            routes: method and path, such as ``POST/v1/acks``; none means all routes.
        """
        for route in routes or ("*",):
            allow(grantee, ["execute-api:Invoke"], self._arn(route))

    def grant_groups(self, grantee: iam.IGrantable, *groups: AccessGroup) -> None:
        """Allow a role the calls of some groups, and no others (``execute-api:Invoke``).

        Args:
            grantee: the role, or a function with one.
            groups: of calls.
        """
        allowed = (*paths_of(groups), *self._console_paths(groups))
        for effect, paths in ((iam.Effect.ALLOW, allowed), (iam.Effect.DENY, CUT)):
            grantee.grant_principal.add_to_principal_policy(
                iam.PolicyStatement(
                    effect=effect,
                    actions=["execute-api:Invoke"],
                    resources=[self._arn(path) for path in paths],
                )
            )

    def _console_paths(self, groups: Collection[AccessGroup]) -> list[str]:
        """Method and path of the pages and buttons of the console, if the API serves it."""
        if not self._settings.console:
            return []
        found = [path for group in groups for path in CONSOLE.get(group, ())]
        return [path for path in found if self._settings.console_write or not path.startswith("POST")]

    def _arn(self, path: str) -> str:
        return Stack.of(self).format_arn(
            service="execute-api", resource=self.api.api_id, resource_name=f"$default/{path}"
        )


def _cors(settings: Settings) -> apigw.CorsPreflightOptions | None:
    """What API Gateway tells browsers, if pages of other sites may call the API."""
    if not settings.cors_origins:
        return None
    return apigw.CorsPreflightOptions(
        allow_origins=settings.cors_origin_list,
        allow_methods=[apigw.CorsHttpMethod.ANY],
        allow_headers=[
            *("authorization", "content-type", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"),
            *(names.IDEMPOTENCY_HEADER.lower(), names.CORRELATION_HEADER.lower()),
        ],
        expose_headers=[
            *("location", "retry-after", "ratelimit", "allow"),
            *(names.REPLAYED_HEADER.lower(), names.CORRELATION_HEADER.lower()),
        ],
        max_age=Duration.hours(1),
    )


def _authorizer(settings: Settings) -> apigw.IHttpRouteAuthorizer | None:
    match settings.auth:
        case "iam":
            return authorizers.HttpIamAuthorizer()
        case "jwt":
            return authorizers.HttpJwtAuthorizer(
                "Jwt", settings.jwt_issuer, jwt_audience=settings.jwt_audiences
            )
        case _:
            return None
