"""Steps that join two streams."""
