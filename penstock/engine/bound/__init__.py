"""Threads that own operators, each with a queue of its own."""
