"""Tests of penstock.spark.patterns."""
