"""Reading a form that one of this console's own pages has sent."""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request

from fanin.console.security.sessions import form_token
from fanin.errors import AccessDenied, InvalidRequest, RequestTooLarge

TOKEN: Final = "form_token"  # noqa: S105 - the name of a field
MAX_FORM: Final = 65_536
"""Bytes of a form."""
_MAX_FIELDS: Final = 200


async def read_form(request: Request, session: str) -> ImmutableMultiDict[str, str]:
    """Read the fields of a form, without its token.

    Raises:
        AccessDenied: the form is not from a page of this session.
        RequestTooLarge: it is too long.
        InvalidRequest: it is not a form.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM:
            raise RequestTooLarge(f"a form has at most {MAX_FORM:,} bytes")
    try:
        fields = parse_qsl(
            body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=_MAX_FIELDS
        )
    except ValueError as error:
        raise InvalidRequest(f"the body is not a form: {error}") from error
    # Compared as bytes: a text may have characters that compare_digest does not take.
    given = dict(fields).get(TOKEN, "")
    if not hmac.compare_digest(given.encode(errors="surrogatepass"), form_token(session).encode()):
        raise AccessDenied("the form is from another session; go back, load the page again, and press again")
    return ImmutableMultiDict([pair for pair in fields if pair[0] != TOKEN])
