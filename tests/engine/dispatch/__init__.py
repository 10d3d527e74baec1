"""Tests of penstock.engine.dispatch."""
