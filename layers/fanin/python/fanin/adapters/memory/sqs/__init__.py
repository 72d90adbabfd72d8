"""SQS in memory: queues that keep SQS's promises, and a client that answers as boto3's does."""

from fanin.adapters.memory.sqs.client import InMemorySqs
from fanin.adapters.memory.sqs.queue import MessageInFlight, Queue, QueueStore

__all__ = ["InMemorySqs", "MessageInFlight", "Queue", "QueueStore"]
