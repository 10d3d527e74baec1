"""Operators over windows: aggregates, rankings, co-groups."""
