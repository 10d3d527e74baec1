"""Steps that remember something for each key."""
