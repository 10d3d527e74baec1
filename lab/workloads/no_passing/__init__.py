"""A no-passing zone between two check points: who overtook whom (the buffer limits paper's scenario)."""
