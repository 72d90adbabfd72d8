"""The JSON form of requests and answers, one module for each feature, used by both ends."""
