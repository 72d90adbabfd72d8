"""The routes that people and tools ask about a batch: why it is not finished, its picture, its redrives."""

from fanin import names
from fanin.app.api import Diagnostics, Ledger, Redrives
from fanin.domain.access import AccessGroup
from fanin.entry.http.calls import Call
from fanin.entry.http.results import of_redrive
from fanin.entry.http.route import LoggedAction, Repeat, consumes, operates, paged, produces, reads
from fanin.errors import GONE, ChannelRefused
from fanin.wire import batches, items, redrives
from fanin.wire.json_types import NATURAL
from fanin.wire.picture import PICTURE

_BATCH = f"{names.API_ROOT}/batches/{{batch_id}}"


# fmt: off
ROUTES = (
    reads(
        f"{_BATCH}/picture", "getPicture", Call(Ledger.picture), PICTURE,
        optional={
            "level": NATURAL.with_keywords(description="of the node; 0 shows items; by default the root"),
            "number": NATURAL.with_keywords(default=0, description="of the node on its level"),
        },
    ),
    operates(
        "POST", f"{_BATCH}/redrive", "redriveBatch", Call(Redrives.redrive, "request"), redrives.REDRIVING,
        body=redrives.REDRIVE, errors=(ChannelRefused,),
        action=LoggedAction(of_redrive, unless=lambda request: bool(request.body.get("dry_run"))),
    ),
    reads(
        f"{_BATCH}/redrives", "listRedrives", Call(Redrives.redrives), redrives.REDRIVINGS, optional=paged(),
        also=(AccessGroup.OPERATE,),
    ),
    reads(f"{_BATCH}/diagnosis", "diagnoseBatch", Call(Diagnostics.why), items.DIAGNOSIS),
    reads(
        f"{names.API_ROOT}/attention", "listAttention", Call(Diagnostics.attention), batches.ATTENTION,
        optional=paged(),
    ),
    produces(
        "POST", f"{_BATCH}/sent", "noteSent", Call(Diagnostics.note_sent, "sent"), None, 204, body=items.SENT,
    ),
    consumes(
        "POST", f"{names.API_ROOT}/retries", "noteRetries", Call(Diagnostics.note_retries, "retries"), None,
        204, body=items.RETRIES, errors=GONE, repeat=Repeat.LATE,
    ),
)
# fmt: on
