"""Where a query begins and ends: its source and its sink."""
