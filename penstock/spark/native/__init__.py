"""What Spark does by itself: expressions and first steps as native columns."""
