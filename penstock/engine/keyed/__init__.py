"""Keyed operators in several tasks, and how their keys move while data flows."""
