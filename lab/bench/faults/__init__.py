"""The laboratory of faults: what a run survives, what it refuses, and what it must never lose."""
