"""A run in one process: its settings, its graph, its threads, its end."""
