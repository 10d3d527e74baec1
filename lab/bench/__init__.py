"""Benchmarks: each runs a workload and its baselines in one run and reports ratios."""
