"""The outside world behind the ports: DynamoDB, SQS, EventBridge, Scheduler, clock, and memory."""
