"""Patterns: what users write, their text, their automaton, and how they are matched and detected."""
