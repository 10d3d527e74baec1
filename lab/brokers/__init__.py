"""Real outside systems on this machine, for tests, benchmarks and examples: each in a temporary folder."""
