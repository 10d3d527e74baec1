"""What is in a checkpoint, without its app: shown, verified, gone back to and copied."""
