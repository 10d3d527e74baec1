"""Tests of penstock.spark.checkpoint."""
