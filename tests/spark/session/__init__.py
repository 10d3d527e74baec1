"""Tests of penstock.spark.session."""
