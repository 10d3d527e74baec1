"""The Yahoo streaming benchmark: advertisement views counted per campaign and ten seconds."""
