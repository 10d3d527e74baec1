"""Groups of queries: a streaming query each, and who begins next."""
