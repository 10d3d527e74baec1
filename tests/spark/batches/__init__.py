"""Tests of penstock.spark.batches."""
