"""Tests of penstock.connectors.postgres."""
