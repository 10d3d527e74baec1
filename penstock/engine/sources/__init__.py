"""The node runtime's sources: columns in memory, generators, files, and lines from a socket."""
