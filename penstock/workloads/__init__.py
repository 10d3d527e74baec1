"""Workloads: the benchmarks' data and queries, reproducible by seed."""
