"""Tests of penstock.query.stream."""
