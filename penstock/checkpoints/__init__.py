"""What a run keeps and goes on from, whichever runtime it is; and what people can ask of it."""
