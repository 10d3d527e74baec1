"""Groupings: from hashing alone to two tiers, each routes a stream's rows to tasks."""
