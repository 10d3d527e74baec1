"""The traffic workload: every car of a simulated city, reported 25 times a second."""
