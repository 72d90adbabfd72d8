"""What each role may do with the tables; ``Storage.grant`` turns it into a policy."""

from dataclasses import dataclass

from fanin import names

PROGRESS = (
    *(names.BATCH_ID, names.STATE, names.STATE_SHARD, names.DUE_AT, names.TOUCHED_AT),
    *("acked", "cause", "ended_at", "failed", "failed_more", "failing", "mode", "partial"),
    *("deadline", "kind", "retries", names.ATTENTION),
    *("closed_at", "draining_at", "grown"),
    *("failing_at", "waiting_at", "milestone"),
    *("t0", "t1", "t2", "t3", "totals_exact"),
)
"""Attributes of a batch row that an acknowledgement may read or write: they move the batch forward.

IAM denies a request that names any other attribute (such as salt, limit or parent), whatever the code does.
"""
BEGIN = (*PROGRESS, "items")
"""The same, and how many items a batch has."""
NOTES = (
    *(names.BATCH_ID, names.PART, names.EXPIRES_AT),
    *("item", "reason", "attempts", "failed_at", "source", "kept", "totals", "given_up"),
    "message",
    "result",
    *("attempt", "error", "queue", "at"),
)
"""Attributes of a part that whoever marks an item may write: notes of failures, messages, results, retries.

So such a role can neither replace nor delete a part, nor write a key or a reply.
"""


@dataclass(frozen=True)
class Access:
    """What a role may do with the tables, as names of DynamoDB actions without ``dynamodb:``.

    Attributes:
        batches: actions on the batches table, on all attributes.
        progress: attributes that UpdateItem may name there; empty grants no such update.
        listing: whether the role may query the index by state.
        finding: whether the role may query the indexes by user key and by trouble.
        words: actions on the words table.
        parts: actions on the parts table, on all attributes.
        notes: attributes that UpdateItem may name there; empty grants no such update.
        directory: actions on the directory table.
    """

    batches: tuple[str, ...] = ("BatchGetItem",)
    progress: tuple[str, ...] = PROGRESS
    listing: bool = False
    finding: bool = False
    words: tuple[str, ...] = ("BatchGetItem", "UpdateItem")
    parts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    directory: tuple[str, ...] = ()


SETTLE = Access()
"""The settler: finish words and end batches."""
WAKE = Access(parts=("BatchGetItem", "Query"))
"""The timer: the same at a deadline, which a pattern may postpone."""
REAP = Access(listing=True, progress=(*PROGRESS, "stall_told", "stall_why"), parts=("BatchGetItem", "Query"))
"""The reaper: the same for batches that it finds by state, and the mark that a stall was told."""
ACK = Access(parts=("BatchGetItem", "Query"), notes=NOTES)
"""Consumers, and the function for dead letters: mark items done or failed, note why they failed and when
their attempts did, keep their messages, and count the failures of a batch that tolerates only some."""
NOTIFY = Access(
    parts=("BatchGetItem", "DeleteItem", "Query"), notes=NOTES, directory=("BatchGetItem", "DeleteItem")
)
"""The notifier: announce ends with their failures, mark parent items, release correlation ids.

It also deletes the messages of failed items of batches that were removed.
"""
SCATTER = Access(progress=BEGIN, parts=("BatchGetItem", "UpdateItem"), directory=("Query",))
"""The worker of scatters: list recipients, read the message, fail recipients that cannot be reached."""
REDRIVE = Access(
    batches=("BatchGetItem", "PutItem", "UpdateItem"),
    progress=(),
    parts=("BatchGetItem", "PutItem", "Query", "UpdateItem"),
    directory=("BatchGetItem", "UpdateItem"),
)
"""The worker of redrives: open batches and add items, read failures and their messages, take them."""
GATHER = Access(parts=("BatchGetItem", "Query", "UpdateItem"))
"""The function for replies: store replies, mark their items done, and count them."""
FOLLOW = Access(batches=(), progress=(), words=(), directory=("BatchGetItem",))
"""The reader of the directory's stream: read the route whose rule it brings in line."""
ROUTE = Access(batches=(), progress=(), words=(), directory=("BatchGetItem", "Query", "UpdateItem"))
"""The router: the same, and note who has an event while others wait for it."""
REGISTER = Access(batches=(), progress=(), words=(), directory=("BatchGetItem", "Query", "UpdateItem"))
"""The registrar: add and remove registrations."""
DELIVER = Access(
    progress=(names.BATCH_ID, names.STATE, names.ATTENTION),
    words=(),
    parts=("BatchGetItem", "Query", "UpdateItem"),
)
"""The function of targets: read where they are, note how far they are, and flag batches for them."""
READ = Access(
    progress=(),
    listing=True,
    finding=True,
    words=("BatchGetItem",),
    parts=("BatchGetItem", "Query"),
    directory=("BatchGetItem", "Query"),
)
"""A console without buttons: everything that can be read."""
SERVE = Access(
    batches=("BatchGetItem", "PutItem", "UpdateItem"),
    progress=(),
    listing=True,
    finding=True,
    words=("BatchGetItem", "UpdateItem"),
    parts=("BatchGetItem", "BatchWriteItem", "PutItem", "Query", "UpdateItem"),
    directory=("BatchGetItem", "DeleteItem", "Query", "UpdateItem"),
)
"""The API, and clients that use the library directly on the tables: everything the services do."""
PIPELINE = Access(
    batches=("BatchGetItem", "PutItem", "Scan", "UpdateItem"),
    progress=(),
    listing=True,
    finding=True,
    words=("BatchGetItem", "DescribeTable", "Scan", "UpdateItem"),
    parts=SERVE.parts,
    directory=SERVE.directory,
)
"""The Spark jobs: the same, scans of the tables of batches and words, and the limit of the latter, by which a
dry run says how long a run would take."""
