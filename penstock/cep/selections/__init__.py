"""Selections at work: splitters, instances of detectors, and mergers."""
