"""The ledger's stores on DynamoDB: batches, words, parts and directory, four tables behind one client."""

from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.adapters.dynamodb.records import DynamoRecords
from fanin.adapters.dynamodb.words import DynamoWords

__all__ = ["Connection", "DynamoBatches", "DynamoParts", "DynamoRecords", "DynamoWords"]
