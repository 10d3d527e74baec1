"""Tests of penstock.spark.frames."""
