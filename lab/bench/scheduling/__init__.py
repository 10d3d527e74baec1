"""Policies, passes and memory compared on one engine."""
