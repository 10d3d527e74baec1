"""The pipeline on Spark: sources, lowering, tasks, commit, sinks. Spark is imported here and nowhere else."""
