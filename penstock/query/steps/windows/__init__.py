"""Steps over windows: aggregates, rankings, co-groups."""
