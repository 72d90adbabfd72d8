"""How bodies travel: which are JSON, answers without one, and answers that are compressed."""

from __future__ import annotations

import re
from typing import Any, Final

from fanin.domain import limits
from fanin.errors import UnsupportedMediaType

COMPRESSED_FROM: Final = 1024
"""Characters of an answer up to which it is sent as it is."""

_JSON_TYPE: Final = (
    r"(application/json|[\w.!#$&^+-]+/[\w.!#$&^-]+\+json)"  # RFC 6839 for the suffix
    # RFC 8259 knows no parameter, and JSON is UTF-8: others say nothing, and another charset is an error
    r"(\s*;(\s*charset\s*=\s*\"?utf-?8\"?|(?!\s*charset\s*=)\s*[\w.-]+\s*=\s*([^\s\",;]+|\"[^\"]*\"))?)*\s*"
)
_NO_WEIGHT: Final = r"\s*q\s*=\s*0(\.0*)?\s*"


def check_is_json(content_type: str, encoding: str) -> None:
    """Refuse a body of another type, or compressed; one without a type is taken for JSON.

    Many tools call a body a form by default, and so do the pages of other sites, which
    need no permission for that.

    Args:
        content_type: the request's header; empty if it has none.
        encoding: the same of Content-Encoding.

    Raises:
        UnsupportedMediaType: the type is neither application/json nor ends in +json, or is not in UTF-8; or
            the body is compressed.
    """
    if encoding.strip().lower() not in {"", "identity"}:
        raise UnsupportedMediaType(
            f"the body has the Content-Encoding {limits.shown(encoding)}; send it plain, without that header"
        )
    if content_type and not re.fullmatch(_JSON_TYPE, content_type.strip(), re.IGNORECASE):
        raise UnsupportedMediaType(
            f"the body must be JSON in UTF-8, but its Content-Type is {limits.shown(content_type)}; send the"
            " header Content-Type: application/json"
        )


def as_get(event: dict[str, Any]) -> dict[str, Any]:
    """The event of a HEAD request with GET as its method: both have the same answer, but for the body."""
    context = event["requestContext"]
    return {**event, "requestContext": {**context, "http": {**context["http"], "method": "GET"}}}


def compress(answer: dict[str, Any], accepted: str) -> None:
    """Compress a long answer, if its client takes gzip.

    Args:
        answer: in payload format 2.0, which carries bytes in base64.
        accepted: the request's header Accept-Encoding; empty if it has none.
    """
    if len(answer["body"]) <= COMPRESSED_FROM:
        return
    answer["headers"]["Vary"] = "Accept-Encoding"
    if not takes_gzip(accepted):
        return
    import base64  # noqa: PLC0415  most answers are short
    import zlib  # noqa: PLC0415

    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)  # in the format of gzip
    packed = packer.compress(answer["body"].encode()) + packer.flush()
    answer["body"] = base64.b64encode(packed).decode()
    answer["isBase64Encoded"] = True
    answer["headers"]["Content-Encoding"] = "gzip"


def takes_gzip(accepted: str) -> bool:
    """Whether a client takes gzip, by its header Accept-Encoding (RFC 9110, section 12.5.3)."""
    takes: dict[str, bool] = {}
    for coding in accepted.lower().split(","):
        name, _, weight = coding.partition(";")
        takes[name.strip()] = not re.fullmatch(_NO_WEIGHT, weight)
    return takes.get("gzip", takes.get("*", False))
