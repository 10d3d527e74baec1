"""Patterns in parallel: what the splitter carries and what a second instance brings."""
