"""Patterns at work: one compiled machine for all of them, by key or by start."""
