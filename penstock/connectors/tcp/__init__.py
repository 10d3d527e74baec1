"""TCP: a source of the lines of a connection."""
