"""The workloads that benchmarks run: the papers' and public ones, generated."""
