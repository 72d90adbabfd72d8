"""Who sends a request, as API Gateway has found out, and whether their token allows it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from fanin.domain.access import AccessGroup, Principal, bounded_name
from fanin.errors import AccessDenied

if TYPE_CHECKING:  # a request that is refused, or logged, imports the record of an action
    from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

    from fanin.wire.actions import Caller


def principal_of(event: APIGatewayProxyEventV2) -> Principal | None:
    """Who sends a request; None if nobody has checked that.

    The sessions of a role are one owner of idempotency keys: each process of a producer has a session of its
    own, and one must be able to go on where another died. A token's subject is one for each issuer.
    """
    authorizer = event.request_context.authorizer
    iam, claims = authorizer.iam, authorizer.jwt_claim
    if identity := iam.user_arn or iam.user_id or iam.caller_id:
        role = re.fullmatch(r"(arn:[^:]+:sts::[^:]*:assumed-role/.+)/[^/]+", identity)
        return Principal(bounded_name(identity), f"iam {role[1] if role else identity}")
    if subject := _claim(claims, "sub") or _claim(claims, "client_id"):
        return Principal(bounded_name(subject), f"jwt {_claim(claims, 'iss') or ''} {subject}")
    return None


def caller_of(event: APIGatewayProxyEventV2) -> Caller:
    """The same for the action log; without a check, all that is known is the address."""
    from fanin.wire.actions import Caller, CallerKind  # noqa: PLC0415  only actions need it

    authorizer = event.request_context.authorizer
    iam, claims = authorizer.iam, authorizer.jwt_claim
    if identity := iam.user_arn or iam.user_id or iam.caller_id:
        return Caller(CallerKind.IAM, identity, account=iam.account_id or None)
    if claims:
        subject, client = _claim(claims, "sub"), _claim(claims, "client_id")
        return Caller(CallerKind.JWT, subject or client or "", issuer=_claim(claims, "iss"), client=client)
    http = event.request_context.get("http") or {}
    return Caller(CallerKind.ADDRESS, http.get("sourceIp") or "")


def groups_of(event: APIGatewayProxyEventV2, prefix: str) -> frozenset[AccessGroup]:
    """The groups that the scopes of a request's token allow.

    API Gateway has checked the token. It passes the claims on as text: ``scope`` has its values separated by
    spaces (RFC 8693, section 4.2). Some issuers have a list ``scp`` instead, which arrives as ``[a b]``.
    """
    claims = event.request_context.authorizer.jwt_claim or {}
    found = (claims.get(name) or "" for name in ("scope", "scp"))
    texts = (" ".join(map(str, one)) if isinstance(one, list) else str(one) for one in found)
    scopes = {scope for text in texts for scope in re.split(r"[\s,]+", text.strip("[]")) if scope}
    return frozenset(group for group in AccessGroup if f"{prefix}{group}" in scopes)


def admit(
    event: APIGatewayProxyEventV2, operation: str, groups: Collection[AccessGroup], prefix: str
) -> None:
    """Refuse a request whose token has no scope for it.

    Args:
        event: the request.
        operation: what it asks for.
        groups: those that may do it, its own first.
        prefix: of all scopes.

    Raises:
        AccessDenied: the token has none of the scopes.
    """
    found = groups_of(event, prefix)
    if found.isdisjoint(groups):
        needed = " or ".join(f"{prefix}{group}" for group in groups)
        has = ", ".join(f"{prefix}{group}" for group in AccessGroup if group in found) or "none"
        raise AccessDenied(
            f"{operation} needs a token with the scope {needed}; of fanin's scopes this token has {has}."
            " Ask whoever issues your tokens for that scope"
        )


def _claim(claims: dict[str, Any] | None, name: str) -> str | None:
    value = (claims or {}).get(name)
    return None if value is None else str(value)
