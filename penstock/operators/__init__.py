"""Operators: one file each, with its kernel and its state."""
