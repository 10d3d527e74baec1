"""Tests of penstock.connectors.kafka."""
