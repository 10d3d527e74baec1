"""Tests of penstock.spark.groups."""
