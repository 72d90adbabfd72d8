"""The ledger's stores on DynamoDB: batches, words and parts, three tables behind one client."""

from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.adapters.dynamodb.words import DynamoWords

__all__ = ["Connection", "DynamoBatches", "DynamoParts", "DynamoWords"]
