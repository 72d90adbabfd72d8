"""Names on which several parts must agree: environment, tables, attributes, messages, events.

The infrastructure code imports this module and nothing else of the package, so it has no imports of its own.
"""

from typing import Final

# Environment of the functions and of ``Tracker.from_env()``.
ENV_BATCHES_TABLE: Final = "FANIN_BATCHES_TABLE"
ENV_WORDS_TABLE: Final = "FANIN_WORDS_TABLE"
ENV_PARTS_TABLE: Final = "FANIN_PARTS_TABLE"
ENV_DIRECTORY_TABLE: Final = "FANIN_DIRECTORY_TABLE"
ENV_BUS: Final = "FANIN_BUS"  # the ARN: event ids begin with what it names; a name is taken, too
ENV_ACK_QUEUE_URL: Final = "FANIN_ACK_QUEUE_URL"
ENV_RETRY_QUEUE_URL: Final = "FANIN_RETRY_QUEUE_URL"
ENV_SCATTER_QUEUE_URL: Final = "FANIN_SCATTER_QUEUE_URL"
ENV_REDRIVE_QUEUE_URL: Final = "FANIN_REDRIVE_QUEUE_URL"
ENV_TARGETS_QUEUE_URL: Final = "FANIN_TARGETS_QUEUE_URL"
ENV_WEBHOOK_HOSTS: Final = "FANIN_WEBHOOK_HOSTS"  # separated by commas; empty: no webhooks
ENV_WEBHOOK_SECRET_ARN: Final = "FANIN_WEBHOOK_SECRET_ARN"  # noqa: S105  where the secret is
ENV_WEBHOOK_LOOPBACK: Final = "FANIN_WEBHOOK_LOOPBACK"  # "true" only on a stack on one's own machine
ENV_REPLY_QUEUE_URL: Final = "FANIN_REPLY_QUEUE_URL"
ENV_CLAIMS_BUCKET: Final = "FANIN_CLAIMS_BUCKET"
ENV_SCHEDULE_GROUP: Final = "FANIN_SCHEDULE_GROUP"
ENV_SCHEDULE_ROLE_ARN: Final = "FANIN_SCHEDULE_ROLE_ARN"
ENV_TIMER_ARN: Final = "FANIN_TIMER_ARN"
ENV_TIMER_DLQ_ARN: Final = "FANIN_TIMER_DLQ_ARN"
ENV_ROUTER_ARN: Final = "FANIN_ROUTER_ARN"
ENV_UNROUTED_QUEUE_URL: Final = "FANIN_UNROUTED_QUEUE_URL"  # empty: events without a route are only counted
ENV_OPEN_IDLE_TTL: Final = "FANIN_OPEN_IDLE_TTL"  # seconds
ENV_CLOSED_IDLE_TTL: Final = "FANIN_CLOSED_IDLE_TTL"  # seconds
ENV_BUFFER_PREFIX: Final = "FANIN_BUFFER_PREFIX"  # of the names of queues that are created for buffers
ENV_BUFFER_DEAD_LETTERS_ARN: Final = "FANIN_BUFFER_DEAD_LETTERS_ARN"  # of the queues made for buffers
ENV_KMS_KEY_ARN: Final = "FANIN_KMS_KEY_ARN"  # encrypts the queues made for buffers; empty: a key of SQS
ENV_LIFETIME: Final = "FANIN_LIFETIME"  # seconds
ENV_STALL_AFTER: Final = "FANIN_STALL_AFTER"  # seconds; 0 for never
ENV_LOG_SAMPLE: Final = "FANIN_LOG_SAMPLE"  # percentage of invocations that log a line; none if not set

# Environment of the library and the command line.
ENV_CONSOLE_WRITE: Final = "FANIN_CONSOLE_WRITE"
ENV_CONSOLE_ORIGINS: Final = "FANIN_CONSOLE_ORIGINS"
ENV_JWT_SCOPE_PREFIX: Final = "FANIN_JWT_SCOPE_PREFIX"  # empty: tokens need no scopes
ENV_API_URL: Final = "FANIN_API_URL"
ENV_PROFILE: Final = "FANIN_PROFILE"
ENV_WORK_QUEUE_URL: Final = "FANIN_WORK_QUEUE_URL"  # for programs of users; fanin does not read it

# The batches table.
BATCH_ID: Final = "batch_id"
STATE_SHARD: Final = "shelf"  # "<state>#<shard>"
INDEX_BY_STATE_SHARD: Final = "by_shelf"  # key: STATE_SHARD, DUE_AT
DUE_AT: Final = "due_at"  # milliseconds: when the reaper should look at the batch
TOUCHED_AT: Final = "touched_at"
STATE: Final = "state"
SHARDS: Final = 8
USER_SHARD: Final = "user_shard"  # "<user key>#<shard>", of batches that have a user key
INDEX_BY_USER_KEY: Final = "by_user_key"  # key: USER_SHARD, BATCH_ID
ATTENTION: Final = "attention"  # "<trouble>#<shard>", of batches that a person should look at
INDEX_BY_ATTENTION: Final = "by_attention"  # key: ATTENTION, BATCH_ID

# The words table.
WORD_ID: Final = "word_id"  # "<batch>/<level>/<index>"
WORD: Final = "word"
DONE: Final = "done"
FAILED: Final = "failed"

# The parts table.
PART: Final = "part"  # "add/<key>", "child/<ordinal>", "failure/…", "retry/…", "sent/…", "target/<number>"

# The directory table.
TOPIC: Final = "topic"
NAME: Final = "name"

# The time-to-live attribute of every table, in seconds since the epoch.
EXPIRES_AT: Final = "expires_at"

TERMINAL_STATES: Final = ("complete", "timed_out", "cancelled", "orphaned")

# The bucket for claims.
CLAIM_DAYS: Final = (2, 4, 8, 16, 32, 64, 128, 256, 366)
"""Days after which the bucket deletes a claim, each for keys that begin with its prefix.

The last is a batch's longest lifetime and the day after it; keys without a prefix are kept that long, too.
"""
CLAIM_PREFIX: Final = "days-{}/"

# Messages.
ITEM_ATTRIBUTE: Final = "fanin-item"  # SQS message attribute that carries the item id
REASON_ATTRIBUTE: Final = "fanin-reason"  # of a mark that was set aside: why
ATTRIBUTE_CORRELATION: Final = "fanin-correlation"
ATTRIBUTE_REPLY_TO: Final = "fanin-reply-to"
ADDRESSING: Final = (ITEM_ATTRIBUTE, ATTRIBUTE_REPLY_TO)
"""Attributes that belong to one message and its item; whoever hands attributes on leaves these out."""
ATTRIBUTE_TYPE: Final = "fanin-type"
MESSAGE_COMPLETE_FRAME: Final = "Complete Frame"  # types of the messages on a frame's reply channel
MESSAGE_FRAME_ENDED: Final = "Frame Ended"
MESSAGE_REPEAT_REQUESTED: Final = "Repeat Requested"
ACK_TRIES: Final = 200
"""How often a message of the ack queue is received before it becomes a dead letter.

Its pauses grow to a quarter of an hour, so this is about a day in which the tables throttle. Messages that
are at fault do not wait for it.
"""
RETENTION_DAYS: Final = 10
"""How long a queue keeps a message. The age of a message goes on counting in its dead-letter queue."""
DEAD_LETTER_RETENTION_DAYS: Final = 14  # the most that SQS offers
KEEP_TAG: Final = "fanin:keep"  # "reason" on a dead-letter queue: messages of failed items are not stored
TARGET_TRIES: Final = 500
"""How often a job for a target is received before it becomes a dead letter.

After a day the target is parked, which takes some sixty tries.
"""
CHANNEL_TAG: Final = "fanin:channel"  # carried by queues to which fanin may send
TRACKED_TAG: Final = "fanin:tracked"  # carried by queues that fanin may look at, and return messages to
DEAD_LETTERS: Final = "dead-letters"  # its value on queues that fanin may also empty: they fail their items
ROUTE_RULE: Final = "fanin-route-"  # prefix of the name of a route's rule on the bus

# Events on the bus.
EVENT_SOURCE: Final = "fanin"
DETAIL_TYPES: Final = {
    "complete": "Batch Completed",
    "timed_out": "Batch Timed Out",
    "cancelled": "Batch Cancelled",
    "orphaned": "Batch Orphaned",
}
BATCH_STALLED: Final = "Batch Stalled"
EARLY_TYPES: Final = {"failing": "Batch Failing", "waiting": "Batch Waiting", "progress": "Batch Progress"}
GATHER_READY: Final = "Gather Ready"
INSTANCE_REGISTERED: Final = "Instance Registered"
INSTANCE_MOVED: Final = "Instance Moved"
INSTANCE_DEREGISTERED: Final = "Instance Deregistered"
# Published by other services, and followed by the registrar.
INSTANCE_CREATED: Final = "Instance Created"
INSTANCE_DESTROYED: Final = "Instance Destroyed"
INSTANCE_EVENTS: Final = (INSTANCE_CREATED, INSTANCE_DESTROYED)

# Metrics of the functions and of consumers; their only dimension is ``service``.
METRICS_NAMESPACE: Final = "fanin"
METRIC_FIRST: Final = "ItemsFirst"
METRIC_DUPLICATE: Final = "ItemsDuplicate"
METRIC_LATE: Final = "ItemsLate"
METRIC_FAILED: Final = "ItemsFailed"
METRIC_HELD: Final = "ItemsHeld"
METRIC_RELEASED: Final = "ItemsReleased"
METRIC_SKIPPED: Final = "MessagesSkipped"  # written by consumers
CONSUMERS: Final = "consumers"  # value of the dimension of what consumers write
METRIC_ENDED: Final = "BatchesEnded"
METRIC_PARKED: Final = "RecordsParked"
METRIC_POSTPONED: Final = "MessagesPostponed"
METRIC_BUFFER_DEPTH: Final = "BufferDepth"
METRIC_BUFFER_REJECTS: Final = "BufferRejects"
METRIC_BUFFERS_UNREADABLE: Final = "BuffersUnreadable"
METRIC_BUFFER_WAIT: Final = "BufferWaitMilliseconds"
METRIC_FRAMES_OPENED: Final = "FramesOpened"
METRIC_FRAMES_COMPLETED: Final = "FramesCompleted"
METRIC_FRAMES_TIMED_OUT: Final = "FramesTimedOut"
METRIC_REPEATS: Final = "RepeatsRequested"
METRIC_SETTLED: Final = "BatchesSettled"
METRIC_ORPHANED: Final = "BatchesOrphaned"
METRIC_TIMED_OUT: Final = "BatchesTimedOut"
METRIC_SENT: Final = "RecipientsSent"
METRIC_UNREACHED: Final = "RecipientsUnreached"
METRIC_REPLIES: Final = "Replies"
METRIC_STUCK: Final = "BatchesStuck"
METRIC_STALLED: Final = "BatchesStalled"
METRIC_UNREAPED: Final = "BatchesUnreaped"
METRIC_DROPPED: Final = "RegistrationsDropped"
METRIC_ROUTED: Final = "EventsRouted"
METRIC_UNROUTED: Final = "EventsUnrouted"
METRIC_TARGETS_DELIVERED: Final = "TargetsDelivered"
METRIC_TARGETS_FAILED: Final = "TargetsFailed"
METRIC_TARGETS_PARKED: Final = "TargetsParked"
METRIC_REFUSED: Final = "MessagesRefused"

# The API.
API_ROOT: Final = "/v1"
SCOPE_PREFIX: Final = "fanin/"
"""What the scopes of tokens begin with, unless a deployment says otherwise; a group of calls follows."""

CONSOLE_ROOT: Final = "/console"
CARLYLE_ROOT: Final = "/api/v1/batch"
IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
CORRELATION_HEADER: Final = "X-Correlation-Id"
REPLAYED_HEADER: Final = "Idempotency-Replayed"
PROBLEM_ROOT: Final = "urn:fanin:problem:"  # prefix of a problem's type; the error's code follows

# Outputs of the stack, read by ``fanin local up`` and by people.
OUTPUT_API_URL: Final = "ApiUrl"
OUTPUTS: Final = {
    ENV_BATCHES_TABLE: "BatchesTable",
    ENV_WORDS_TABLE: "WordsTable",
    ENV_PARTS_TABLE: "PartsTable",
    ENV_DIRECTORY_TABLE: "DirectoryTable",
    ENV_BUS: "Bus",
    ENV_WORK_QUEUE_URL: "WorkQueueUrl",
    ENV_ACK_QUEUE_URL: "AckQueueUrl",
    ENV_SCATTER_QUEUE_URL: "ScatterQueueUrl",
    ENV_REDRIVE_QUEUE_URL: "RedriveQueueUrl",
    ENV_REPLY_QUEUE_URL: "ReplyQueueUrl",
    ENV_TARGETS_QUEUE_URL: "TargetsQueueUrl",
    ENV_CLAIMS_BUCKET: "ClaimsBucket",
    ENV_SCHEDULE_GROUP: "ScheduleGroup",
    ENV_SCHEDULE_ROLE_ARN: "ScheduleRoleArn",
    ENV_TIMER_ARN: "TimerArn",
    ENV_TIMER_DLQ_ARN: "TimerDlqArn",
    ENV_ROUTER_ARN: "RouterArn",
    ENV_BUFFER_PREFIX: "BufferPrefix",
    ENV_BUFFER_DEAD_LETTERS_ARN: "BufferDeadLettersArn",
}
"""Environment variable of the library and the functions → output of the stack that has its value.

Beside them is ``ENV_API_URL``, whose output differs on the local stack.
"""

# Outputs of the pipeline's stack, read by ``fanin spark submit``.
PIPELINE_OUTPUT_APPLICATION: Final = "ApplicationId"
PIPELINE_OUTPUT_ROLE: Final = "JobRoleArn"
PIPELINE_OUTPUT_BUCKET: Final = "Bucket"
PIPELINE_OUTPUT_ENTRY: Final = "EntryPoint"
PIPELINE_OUTPUT_PACKAGE: Final = "Package"
PIPELINE_OUTPUT_AUDIT: Final = "AuditMachineArn"  # the state machine that audits on a schedule
PIPELINE_OUTPUT_CONF: Final = "SparkConf"  # a JSON object of Spark properties
