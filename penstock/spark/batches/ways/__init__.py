"""The ways in which a batch runs on Spark."""
