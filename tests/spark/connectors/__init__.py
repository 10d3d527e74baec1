"""Tests of connectors on Spark."""
