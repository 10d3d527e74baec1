"""The node runtime's sinks: memory, console, Parquet, CSV and JSON-lines files, callback, discard."""
