"""Three workloads on one node, each against what one hand-written loop over the same events does."""
