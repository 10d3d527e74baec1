"""The node runtime: the graph in one process, on a fixed pool of threads, without a JVM."""
