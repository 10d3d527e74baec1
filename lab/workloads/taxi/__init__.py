"""The New York taxi benchmark: trips counted and their distance averaged per pickup cell."""
