"""The ports' implementations: on DynamoDB, SQS, EventBridge, Scheduler and S3, and in memory."""
