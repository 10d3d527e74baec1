"""Tests of penstock.connectors.files."""
