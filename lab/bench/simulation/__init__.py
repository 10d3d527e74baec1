"""What the simulator predicts beside what the engine does."""
