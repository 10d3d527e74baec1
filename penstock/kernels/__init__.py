"""Compiled loops: the expression compiler, the cache of kernels on disk, and hashing."""
