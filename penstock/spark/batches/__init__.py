"""Spark in batches: one streaming query, whose batches the engine runs in tasks."""
