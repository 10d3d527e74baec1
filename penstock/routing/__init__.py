"""Routing: which task owns which keys, and how that follows the load. Pure: no clock, no thread, no Spark."""
