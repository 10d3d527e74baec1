"""Tests of penstock.connectors.formats."""
