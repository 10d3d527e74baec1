"""Files and folders as sources and as sinks."""
