"""Tests of penstock.query.patterns."""
