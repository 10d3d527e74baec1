"""What a run keeps and goes on from: folders, positions, Spark's logs, and who has them."""
