"""Placement: which tasks sit together, and which node gets them. Pure: no clock, no thread, no Spark."""
