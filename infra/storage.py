"""The tables, and who may do what with them."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from fanin import names
from infra.permissions import allow
from infra.settings import Settings

PROGRESS = (
    *(names.BATCH_ID, names.STATE, names.STATE_SHARD, names.DUE_AT, names.TOUCHED_AT),
    *("acked", "ended_at", "mode", "partial"),
    *("deadline", "kind", "retries"),
)
"""Attributes of a batch row that an ack may name: what moves a batch forward, and what guards that move.

A request that names another (its salt, its limit, its parent) is denied, whatever the code says.
"""
BEGIN = (*PROGRESS, "closed_at", "items")
"""The same, and what says that all items of a batch are known."""


@dataclass(frozen=True)
class Access:
    """What a role may do with the tables, as names of DynamoDB actions.

    Attributes:
        batches: actions on whole rows of the batches table.
        progress: attributes that it may update there.
        listing: whether it may query the index by state.
        words: actions on the words table.
        parts: actions on the parts table.
        directory: actions on the directory table.
    """

    batches: tuple[str, ...] = ("BatchGetItem", "GetItem")
    progress: tuple[str, ...] = PROGRESS
    listing: bool = False
    words: tuple[str, ...] = ("BatchGetItem", "UpdateItem")
    parts: tuple[str, ...] = ()
    directory: tuple[str, ...] = ()


SETTLE = Access()
"""Finish words and end batches: the settler."""
WAKE = Access(parts=("BatchGetItem", "Query"))
"""The same at a deadline, which a pattern may put off: the timer."""
REAP = Access(listing=True, parts=("BatchGetItem", "Query"))
"""The same for batches found by state."""
ACK = Access(parts=("BatchWriteItem",))
"""Mark items done or failed, with a note of the reason."""
NOTIFY = Access(parts=("BatchGetItem", "BatchWriteItem", "Query"), directory=("BatchGetItem", "DeleteItem"))
"""Tell the world, the failures included, ack the parent item, and let go of a correlation id."""
SCATTER = Access(
    progress=BEGIN,
    parts=("BatchGetItem", "BatchWriteItem", "UpdateItem"),
    directory=("Query",),
)
"""List whom a scatter goes to, read what it sends, and fail those who cannot be reached."""
GATHER = Access(parts=("BatchGetItem", "Query", "UpdateItem"))
"""Store replies, mark them, and count."""
ROUTE = Access(batches=(), progress=(), words=(), directory=("BatchGetItem", "Query"))
"""Read who is registered, and the routes."""
REGISTER = Access(batches=(), progress=(), words=(), directory=("BatchGetItem", "Query", "UpdateItem"))
"""Register and drop instances."""
SERVE = Access(
    batches=("BatchGetItem", "GetItem", "PutItem", "UpdateItem"),
    progress=(),
    listing=True,
    words=("BatchGetItem", "GetItem", "UpdateItem"),
    parts=("BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    directory=("BatchGetItem", "DeleteItem", "Query", "UpdateItem"),
)
"""Everything the ledger does: the API, and whoever uses the library straight on the tables."""
PIPELINE = Access(
    batches=("BatchGetItem", "GetItem", "PutItem", "Scan", "UpdateItem"),
    progress=(),
    listing=True,
    words=("BatchGetItem", "GetItem", "Scan", "UpdateItem"),
    parts=SERVE.parts,
    directory=SERVE.directory,
)
"""The same for Spark jobs, which also read whole tables."""


class Storage(Construct):
    """The tables of the ledger: on-demand, encrypted, restorable, and emptied by time to live.

    Attributes:
        batches: the batch rows, with the index by state and a stream of both images.
        words: the words of the trees, with a stream of new images.
        parts: what else belongs to a batch: failures, idempotency keys, recipients and replies.
        directory: registrations, routes and buffers, with a stream of both images.
        tables: the four, by name.
        environment: the tables' names, for the functions.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        removal = settings.removal_policy
        self.batches = self._table(
            "Batches",
            removal,
            names.BATCH_ID,
            dynamodb.AttributeType.NUMBER,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
        )
        self.batches.add_global_secondary_index(
            index_name=names.INDEX_BY_STATE_SHARD,
            partition_key=dynamodb.Attribute(name=names.STATE_SHARD, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=names.DUE_AT, type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=[names.TOUCHED_AT],
        )
        self.words = self._table(
            "Words",
            removal,
            names.WORD_ID,
            dynamodb.AttributeType.STRING,
            stream=dynamodb.StreamViewType.NEW_IMAGE,
        )
        self.parts = self._table(
            "Parts", removal, names.BATCH_ID, dynamodb.AttributeType.NUMBER, sort_key=names.PART
        )
        self.directory = self._table(
            "Directory",
            removal,
            names.TOPIC,
            dynamodb.AttributeType.STRING,
            sort_key=names.NAME,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
        )
        self.tables = {
            "batches": self.batches,
            "words": self.words,
            "parts": self.parts,
            "directory": self.directory,
        }
        self.environment = {
            names.ENV_BATCHES_TABLE: self.batches.table_name,
            names.ENV_WORDS_TABLE: self.words.table_name,
            names.ENV_PARTS_TABLE: self.parts.table_name,
            names.ENV_DIRECTORY_TABLE: self.directory.table_name,
        }

    def _table(
        self,
        id: str,
        removal: RemovalPolicy,
        key: str,
        key_type: dynamodb.AttributeType,
        *,
        sort_key: str | None = None,
        stream: dynamodb.StreamViewType | None = None,
    ) -> dynamodb.Table:
        return dynamodb.Table(
            self,
            id,
            partition_key=dynamodb.Attribute(name=key, type=key_type),
            sort_key=dynamodb.Attribute(name=sort_key, type=dynamodb.AttributeType.STRING)
            if sort_key
            else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.AWS_MANAGED,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute=names.EXPIRES_AT,
            stream=stream,
            removal_policy=removal,
        )

    def grant(self, grantee: iam.IGrantable, access: Access) -> None:
        """Let a role do what the access says, and nothing else."""
        batches, words, parts = self.batches.table_arn, self.words.table_arn, self.parts.table_arn
        if access.batches:
            allow(grantee, _actions(*access.batches), batches)
        if access.progress:
            condition = {"ForAllValues:StringEquals": {"dynamodb:Attributes": list(access.progress)}}
            allow(grantee, _actions("UpdateItem"), batches, condition)
        if access.listing:
            allow(grantee, _actions("Query"), f"{batches}/index/{names.INDEX_BY_STATE_SHARD}")
        if access.words:
            allow(grantee, _actions(*access.words), words)
        if access.parts:
            allow(grantee, _actions(*access.parts), parts)
        if access.directory:
            allow(grantee, _actions(*access.directory), self.directory.table_arn)


def _actions(*actions: str) -> list[str]:
    return [f"dynamodb:{action}" for action in actions]
