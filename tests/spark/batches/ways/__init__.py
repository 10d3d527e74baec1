"""Tests of penstock.spark.batches.ways."""
