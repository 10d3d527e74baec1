"""Groups, deployment and partitioners: the figures of Ms-Stream, simulated and on Spark."""
