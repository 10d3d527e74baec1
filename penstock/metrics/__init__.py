"""Metrics: counters per operator, latency per query, and immutable snapshots of both."""
