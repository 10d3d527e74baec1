"""Lines from a TCP connection."""
