"""Tests of penstock.engine.epochs."""
