"""Reading files beside DuckDB and Polars: as fast as they are, or how far behind."""
