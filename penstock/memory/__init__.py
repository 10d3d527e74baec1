"""Memory: where events sit between operators, in blocks of chunks that are allocated ahead of need and
recycled."""
