"""The four tables, and grants on them."""

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from fanin import names
from fanin_cdk.permissions import allow
from fanin_cdk.settings import Settings
from fanin_cdk.table_access import Access


class Storage(Construct):
    """The four tables: billed on demand, encrypted, with point-in-time recovery and time to live.

    Unless the setting ``removal`` is ``destroy``, DynamoDB refuses to delete them until somebody turns their
    deletion protection off.

    Args:
        scope: parent construct.
        id: its id there.
        settings: settings of the deployment; ``removal`` and the throughputs apply to the tables.

    Attributes:
        batches: the batch rows, with indexes by state and by user key, and a stream of old and new images.
        words: the words of the trees, with a stream of new images.
        parts: what else belongs to a batch: failures, idempotency keys, recipients and replies.
        directory: registrations, routes and buffers, with a stream of old and new images.
        tables: the four tables by name.
        environment: variables with the names of the tables.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        self._settings = settings
        self.batches = self._table(
            "Batches",
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
            max_write_request_units=settings.table_max_writes or None,
            max_read_request_units=settings.table_max_reads or None,
        )
        # Only the keys: an acknowledgement changes none of them, so it never writes this index.
        self.batches.add_global_secondary_index(
            index_name=names.INDEX_BY_USER_KEY,
            partition_key=dynamodb.Attribute(name=names.USER_SHARD, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=names.BATCH_ID, type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            max_write_request_units=settings.table_max_writes or None,
            max_read_request_units=settings.table_max_reads or None,
        )
        # Only batches with trouble have the key, so others neither cost nor are read.
        self.batches.add_global_secondary_index(
            index_name=names.INDEX_BY_ATTENTION,
            partition_key=dynamodb.Attribute(name=names.ATTENTION, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=names.BATCH_ID, type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            max_write_request_units=settings.table_max_writes or None,
            max_read_request_units=settings.table_max_reads or None,
        )
        self.words = self._table(
            "Words",
            names.WORD_ID,
            dynamodb.AttributeType.STRING,
            stream=dynamodb.StreamViewType.NEW_IMAGE,
            warm=_warm(settings),
        )
        self.parts = self._table("Parts", names.BATCH_ID, dynamodb.AttributeType.NUMBER, sort_key=names.PART)
        self.directory = self._table(
            "Directory",
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
        key: str,
        key_type: dynamodb.AttributeType,
        *,
        sort_key: str | None = None,
        stream: dynamodb.StreamViewType | None = None,
        warm: dynamodb.WarmThroughput | None = None,
    ) -> dynamodb.Table:
        return dynamodb.Table(
            self,
            id,
            partition_key=dynamodb.Attribute(name=key, type=key_type),
            sort_key=dynamodb.Attribute(name=sort_key, type=dynamodb.AttributeType.STRING)
            if sort_key
            else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            max_write_request_units=self._settings.table_max_writes or None,
            max_read_request_units=self._settings.table_max_reads or None,
            warm_throughput=warm,
            encryption=dynamodb.TableEncryption.AWS_MANAGED,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute=names.EXPIRES_AT,
            stream=stream,
            removal_policy=self._settings.removal_policy,
            deletion_protection=self._settings.removal == "retain",
        )

    def grant(self, grantee: iam.IGrantable, access: Access) -> None:
        """Allow a role exactly what the access says.

        Args:
            grantee: the role, or a function or another construct with a role.
            access: one of the constants of ``table_access``, or one of your own.
        """
        batches, words, parts = self.batches.table_arn, self.words.table_arn, self.parts.table_arn
        if access.batches:
            allow(grantee, _actions(*access.batches), batches)
        if access.progress:
            condition = {"ForAllValues:StringEquals": {"dynamodb:Attributes": list(access.progress)}}
            allow(grantee, _actions("UpdateItem"), batches, condition)
        if access.listing:
            allow(grantee, _actions("Query"), f"{batches}/index/{names.INDEX_BY_STATE_SHARD}")
        if access.finding:
            allow(grantee, _actions("Query"), f"{batches}/index/{names.INDEX_BY_USER_KEY}")
            allow(grantee, _actions("Query"), f"{batches}/index/{names.INDEX_BY_ATTENTION}")
        if access.words:
            allow(grantee, _actions(*access.words), words)
        if access.parts:
            allow(grantee, _actions(*access.parts), parts)
        if access.notes:
            condition = {"ForAllValues:StringEquals": {"dynamodb:Attributes": list(access.notes)}}
            allow(grantee, _actions("UpdateItem"), parts, condition)
        if access.directory:
            allow(grantee, _actions(*access.directory), self.directory.table_arn)


def _warm(settings: Settings) -> dynamodb.WarmThroughput | None:
    writes, reads = settings.words_warm_writes, settings.words_warm_reads
    if not (writes or reads):
        return None
    return dynamodb.WarmThroughput(write_units_per_second=writes or None, read_units_per_second=reads or None)


def _actions(*actions: str) -> list[str]:
    return [f"dynamodb:{action}" for action in actions]
