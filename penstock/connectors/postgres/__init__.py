"""PostgreSQL: results of events as rows of a table."""
