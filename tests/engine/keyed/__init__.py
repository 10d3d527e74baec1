"""Tests of penstock.engine.keyed."""
