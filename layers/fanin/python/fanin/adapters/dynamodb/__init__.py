"""The ledger's stores on DynamoDB: four tables (batches, words, parts, directory) behind one client."""
