"""Tests of penstock.connectors.mqtt."""
