"""Tests of penstock.connectors."""
