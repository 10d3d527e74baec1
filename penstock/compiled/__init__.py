"""Kernels as machine code: compiled once, kept on disk, and where their types are fixed made beforehand."""
