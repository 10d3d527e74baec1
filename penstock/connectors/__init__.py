"""Connectors: a folder per outside system, one place for formats, and what all sources and sinks share."""
