"""Tests of penstock.connectors.memory."""
