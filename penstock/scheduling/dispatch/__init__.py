"""The dispatcher: who runs next, with how many events, as a machine without lock, clock or thread."""
