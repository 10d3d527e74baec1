"""Workloads: sources and queries of benchmarks, reproducible by seed."""
