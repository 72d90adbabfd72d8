"""The ledger's stores on DynamoDB: four tables (batches, words, parts, directory) behind one client."""

from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.adapters.dynamodb.records import DynamoRecords
from fanin.adapters.dynamodb.words import DynamoWords

__all__ = ["Connection", "DynamoBatches", "DynamoParts", "DynamoRecords", "DynamoWords"]
