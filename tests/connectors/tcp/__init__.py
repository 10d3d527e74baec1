"""Tests of penstock.connectors.tcp."""
