"""A run as a service: what it tells by logs and pages, where its settings come from, how its file is run."""
