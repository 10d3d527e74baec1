"""How long it takes until queries run."""
