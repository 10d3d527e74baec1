"""Operators that remember something for each key."""
