"""Tests of penstock.engine.seat."""
