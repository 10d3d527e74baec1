"""Epochs: marks that cut a running graph, who waits for them, and the version that comes of each."""
