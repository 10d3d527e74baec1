"""The Yahoo streaming benchmark, on a node and on Spark."""
