"""What a vertex is, and what happens in a turn of one."""
