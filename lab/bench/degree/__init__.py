"""How many instances keep a buffer limit: the figures of the buffer-limits paper."""
