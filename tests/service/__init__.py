"""Tests of what a run tells as a service, and of how its file is run."""
