"""The engine: operators take turns on the workers of one process, without a JVM."""
