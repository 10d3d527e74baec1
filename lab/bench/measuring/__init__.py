"""What all benchmarks share: reports, plots, rates, memory, and machines that are not alone."""
