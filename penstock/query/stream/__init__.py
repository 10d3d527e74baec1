"""Streams: what users write queries with."""
