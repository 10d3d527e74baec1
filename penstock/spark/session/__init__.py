"""The Spark session of a run: started, secured, bounded, and told of in our words."""
