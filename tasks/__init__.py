"""One stage's work on one shard: reads tables, calls the model, writes tables. Knows nothing of Prefect."""
