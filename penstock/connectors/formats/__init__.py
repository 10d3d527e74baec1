"""Formats: bytes into columns and back, whatever they came from."""
