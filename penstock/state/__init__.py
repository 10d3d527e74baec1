"""Keyed state: keys as words, a hash table from words to entry numbers, and growable columns of rows."""
