"""Tests of penstock.engine.bound."""
