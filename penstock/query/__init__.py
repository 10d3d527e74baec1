"""Streams, expressions, windows, and the graph they become. Describes queries; runs nothing."""
