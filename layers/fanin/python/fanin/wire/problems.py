"""Shapes of what every API has: problems (RFC 9457), and the document that describes it."""

from fanin import names
from fanin.wire.json_types import BATCH_ID, OBJECT, TEXT, whole
from fanin.wire.shapes import plain

PROBLEM = plain(
    "Problem",
    {
        "type": TEXT.described(f"{names.PROBLEM_ROOT}<code>, stable"),
        "title": TEXT,
        "status": whole(400, 599),
        "detail": TEXT.described("what was expected, what came, what to do"),
        "request_id": TEXT,
    },
    {
        "retry_after": whole(0).described("seconds"),
        "child": BATCH_ID.described("of item-has-child: id of the child batch"),
    },
    lenient=True,
)
DOCUMENT = plain("Document", {"openapi": TEXT, "info": OBJECT, "paths": OBJECT}, lenient=True)
