"""Tests of penstock.spark.native."""
