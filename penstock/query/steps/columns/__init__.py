"""Steps without state: one event in, some out."""
