"""The traffic workload: a stream of every car of a simulated city, reported 25 times a second."""
