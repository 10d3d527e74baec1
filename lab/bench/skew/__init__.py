"""Skewed keys: routing tables compared, simulated and measured."""
