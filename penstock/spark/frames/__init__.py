"""Streams that Spark reads itself: DataFrames and its formats."""
