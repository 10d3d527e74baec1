"""The Spark session: started, secured, bounded, and told of in our words."""
