"""Benchmarks: a workload and its baselines in one run, as figures, ratios and plots."""
